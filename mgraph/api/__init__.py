"""What the user's process runs: graphs, calls on them, and results that stay on the ranks until they are read.

Arguments are checked here, before any rank starts to work; the work is a function of rank_jobs/.
"""
