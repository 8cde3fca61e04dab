"""Define the command `mgraph run`."""

from __future__ import annotations

import click

from mgraph.cli.algorithm_command import (
    CommandResult,
    Input,
    check_options,
    check_outputs,
    graph_of,
    print_result,
    refuse_same_outputs,
    run_and_write,
)
from mgraph.cli.job_file import COMMANDS, Job, Run, read_job
from mgraph.cli.job_manifest import (
    Manifest,
    entry_of,
    is_done,
    is_interrupted,
    new_manifest,
    outputs_of,
    read_manifest,
    set_entry,
    write_manifest,
)
from mgraph.cli.options import json_option, print_json, source_of
from mgraph.cli.plan import print_plan
from mgraph.cluster.base import Cluster
from mgraph.cluster.devices import cuda_is_installed, visible_gpus
from mgraph.errors import WouldNotFit
from mgraph.formatting import counted
from mgraph.io.write import require_file
from mgraph.planning.memory import GraphPlan, plan_graph


@click.command(epilog=f"Algorithms: {', '.join(COMMANDS)}.")
@click.argument("job", metavar="JOB")
@click.option("--dry-run", is_flag=True, help="Check the job; print the memory plan, and what would be written.")
@click.option("--overwrite", is_flag=True, help="Run again what is done already, and replace files that exist.")
@json_option
def run(job: str, dry_run: bool, overwrite: bool, as_json: bool) -> None:
    """Build the graph of a job file once, and run its algorithms.

    JOB is a TOML file (docs/jobs.md). A manifest beside it keeps what was done: a run whose outputs are those of the
    manifest is not run again. --json prints the manifest.
    """
    found = read_job(job)
    manifest = _manifest_of(found)
    missing = [run for run in found.runs if overwrite or not is_done(entry_of(manifest, run), run)]
    for each in missing:
        each.options["overwrite"] = overwrite or is_interrupted(entry_of(manifest, each))
        each.options["as_json"] = as_json
    edges = _checked(found, missing) if missing else None
    if dry_run:
        _print_plan(found, edges, missing, as_json=as_json)
        return
    if edges is not None:
        _run_all(found, edges, missing, manifest, as_json=as_json)
    if as_json:
        print_json(manifest)
    elif not missing:
        click.echo(f"{job} is done: nothing is left to run; --overwrite runs it again")
    else:
        done = len(found.runs) - len(missing)
        click.echo(f"{found.manifest}: {counted(len(missing), 'run')}" + (f", {done} done before" if done else ""))


def _manifest_of(job: Job) -> Manifest:
    """Return the manifest to go on with: that of the file if it is of this graph and input."""
    require_file(job.manifest, overwrite=True)
    refuse_same_outputs(
        [str(job.file.path), str(job.manifest), *(name for run in job.runs for name in outputs_of(run))]
    )
    old = read_manifest(job.manifest)
    manifest = new_manifest(job)
    if old is None:
        return manifest
    for part, what in (("graph", "its table [graph]"), ("input", "its input")):
        if old[part] != manifest[part]:
            click.echo(f"{job.manifest} is of another graph: {what} has changed", err=True)
            return manifest
    kept = (entry_of(old, run) for run in job.runs)
    return manifest | {"runs": [entry for entry in kept if entry is not None]}


def _checked(job: Job, missing: list[Run]) -> Input:
    """Return the edges of a job; refuse what can be refused before work starts."""
    for run in missing:
        with job.file.at(*run.place):
            check_outputs(run.options)
    with job.file.at("graph"), job.context:
        reads_weights = any(run.spec.reads_weights(run.options) for run in missing)
        edges = source_of(job.options["input"], job.options, ends_only=not reads_weights)
    for run in missing:
        with job.file.at(*run.place):
            check_options(run.spec, edges, run.options)
    made = _plan_of(job, edges) if job.options["memory"] else None
    if made is not None and not made.fits:
        raise WouldNotFit(made.advice())
    return edges


def _run_all(job: Job, edges: Input, missing: list[Run], manifest: Manifest, *, as_json: bool) -> None:
    """Build the graph, and run, write and record every run that is missing."""

    def check(cluster: Cluster) -> None:
        for run in missing:
            with job.file.at(*run.place):
                run.spec.check_cluster(cluster, run.options)

    options = job.options | {"as_json": as_json}
    with graph_of(edges, options, options["layout"], check) as (g, show):
        for run in missing:

            def note(found: CommandResult | None = None, run: Run = run) -> None:
                set_entry(manifest, run, found)
                write_manifest(job.manifest, manifest)

            with job.file.at(*run.place):
                found = run_and_write(g, run.spec, run.options, show, note)
            with found.result:
                note(found)
                if not as_json:
                    print_result(found, run.options)


def _plan_of(job: Job, edges: Input) -> GraphPlan | None:
    """Return the memory plan; None where the job does not say what its ranks are."""
    options = job.options
    backend, ranks, memory = (options[name] for name in ("backend", "num_ranks", "memory"))
    is_here = options["scheduler"] is None and options["scheduler_file"] is None
    if is_here and (backend == "cpu" or not (cuda_is_installed() and visible_gpus())):
        return plan_graph(edges, ranks or 1, "cpu", memory, options["layout"])
    if backend != "auto" and ranks is not None and memory is not None:
        return plan_graph(edges, ranks, backend, memory, options["layout"])
    if memory is not None:
        raise job.file.fault(("limits", "memory"), "a plan also needs workers and backend of [cluster]")
    return None


def _print_plan(job: Job, edges: Input | None, missing: list[Run], *, as_json: bool) -> None:
    """Print what a job would do: the memory plan, the runs that are missing, and their outputs."""
    made = None if edges is None else _plan_of(job, edges)
    runs = [{"run": dict(run.table), "outputs": outputs_of(run), "missing": run in missing} for run in job.runs]
    if as_json:
        print_json({"plan": made, "runs": runs, "manifest": str(job.manifest)})
    else:
        if made is not None:
            print_plan(made)
        elif edges is not None:
            click.echo("no memory plan: it needs workers and backend of [cluster], and memory of [limits]")
        for run in job.runs:
            todo = "would write" if run in missing else "is done:"
            click.echo(
                f"run {run.number + 1}, {run.table['algorithm']}, {todo} {', '.join(outputs_of(run)) or 'no file'}"
            )
        click.echo(f"manifest: {job.manifest}")
    if made is not None and not made.fits:
        raise WouldNotFit(made.advice())
