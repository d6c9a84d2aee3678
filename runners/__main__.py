"""The command line: `python -m runners <command>`. Bad input is one sentence and exit code 2."""

import argparse
import errno
import signal
import sys

from runners import __version__
from runners.errors import UserError

DEFAULT_PROFILE = "lab-cpu"
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m runners", description=__doc__, allow_abbrev=False)
    p.add_argument("--version", action="version", version=f"specverdict {__version__}")
    commands = p.add_subparsers(dest="command", required=True)

    def add(name: str, text: str, depth: bool = False, runs: str | None = None) -> argparse.ArgumentParser:
        c = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        c.add_argument("--profile", default=DEFAULT_PROFILE, help="name in runners/profiles, or a YAML file")
        if depth:
            c.add_argument("--depth", help="quick, full, ... as the profile names them")
        if runs:
            c.add_argument("--runs", default=runs, help="published, local, or a folder")
        return c

    report = add("report", "measure what is missing, analyse, build the book", depth=True, runs="local")
    report.add_argument("--dry-run", action="store_true", help="print commands, environment and plan, start nothing")
    report.add_argument("--only", action="append", metavar="CONFIGURATION", help="only these configurations")
    add("plan", "print each exact command, environment and the plan; start nothing", depth=True, runs="local")
    measure = add("measure", "measure one configuration", depth=True, runs="local")
    measure.add_argument("--configuration", required=True)
    measure.add_argument("--round", type=int)
    add("forecast", "forecast the speed-up of what is not measured yet; scored after", depth=True, runs="local")
    serve = add("serve", "start the configuration the verdict chose and stay in the foreground", runs="local")
    serve.add_argument("--configuration", help="another one than the verdict's")
    serve.add_argument(
        "--use",
        choices=("single_stream", "throughput", "goodput"),
        default="throughput",
        help="which verdict to follow",
    )
    serve.add_argument("--port", type=int)
    add("book", "build the book from runs that are there; start no server", runs="published")
    preflight = add("preflight", "what would fail, looked at in seconds before a long load; start nothing")
    preflight.add_argument("--configuration", action="append", help="only these")
    compare = add("compare", "two sets of runs side by side, by ratio to each one's base")
    compare.add_argument("a", help="published, local, a folder, or an archive")
    compare.add_argument("b")
    compare.add_argument("--other-profile", help="the second one's profile, where its name is another")
    share = add("share", "pack a profile's runs into one archive that another person's `make book` reads", runs="local")
    share.add_argument("--out", help="FILE.tar.gz (default: <profile>-runs.tar.gz)")
    new = commands.add_parser(
        "new-profile", help="look at this machine and write a commented profile", allow_abbrev=False
    )
    new.add_argument("name", help="of the profile: runners/profiles/NAME.yaml is written")
    new.add_argument("--model", help="the target: a Hugging Face folder or a GGUF file")
    new.add_argument("--drafter", help="an EAGLE-3 drafter's folder")
    new.add_argument("--python", action="append", metavar="PYTHON", help="interpreters that may hold an engine")
    rehearse = add(
        "rehearse", "the whole report of a profile against stand-in engines: proves the plumbing, measures nothing"
    )
    rehearse.add_argument("--faults", action="store_true", help="stand-ins that also die, stall and lie")
    publish = add("publish", "copy local runs to data/runs, to be committed", runs="local")
    publish.add_argument("--machine", metavar="NAME", help="keep them beside the published ones: data/elsewhere/NAME")
    setup = add("setup", "make the engine environments and the model")
    setup.add_argument("--engine", action="append", help="only these")
    drafter = add("drafter", "make the profile's own EAGLE-3 drafter: answers, states, training")
    drafter.add_argument("--stage", action="append", choices=("answers", "states", "train", "card"), help="only these")
    drafter.add_argument("--minutes", type=float, help="stop training, resumable, after so long")
    drafter.add_argument("--variant", help="train and publish this variant of the profile's training section instead")
    drafter.add_argument("--scaling", action="store_true", help="train on less text too: data/drafters/scaling.csv")
    align = add("align", "compare captured states, served and replayed accept lengths, and each cause", runs="local")
    align.add_argument(
        "--part", action="append", choices=("states", "replay", "slots", "siblings", "hypotheses", "confusion")
    )
    align.add_argument("--configuration", help="only this one")
    align.add_argument("--cause", action="append", help="only these causes (part hypotheses)")
    diagnose = add("diagnose", "why a drafter fails: files, measured acceptance, what-if replays", runs="local")
    diagnose.add_argument("--configuration", required=True)
    text = "what an engine's log, /metrics text or /server_info says"
    read = commands.add_parser("read", help=text, description=text, allow_abbrev=False)
    read.add_argument("file")
    read.add_argument("--engine", choices=("llamacpp", "sglang", "vllm"), help="whose it is, if it is not recognised")
    read.add_argument("--json", action="store_true")
    read.add_argument("--num-draft-tokens", type=int, help="SGLang's setting, where the log does not tell it")
    text = "read SGLang's published wheels: the patch, layer ids, accept rate, cap"
    commands.add_parser("audit-sglang", help=text, allow_abbrev=False)
    patch = commands.add_parser("patch", help="Kimi-K2.5's EAGLE-3 methods in an installed SGLang", allow_abbrev=False)
    patch.add_argument("action", choices=("check", "apply", "revert"))
    patch.add_argument("--sglang", metavar="FOLDER", help=".../site-packages/sglang")
    patch.add_argument("--python", help="the Python whose SGLang it is (default: python3)")
    add("readme", "write the verdict table and picture into the README", runs="published")
    return p


def main(argv: list[str] | None = None) -> int:
    args = parser().parse_args(argv)
    # A polite kill is an interrupt like Ctrl-C: everything that was started comes down first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # a closed terminal too, unless nohup asked otherwise
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        return run(args) or 0
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        # Of the disk or of a path that was given; anything else is a fault of ours and shows itself whole.
        if error.errno not in DISK:
            raise
        where = error.filename or "the disk"
        print(f"error: {where}: {error.strerror}; finished cells are kept, mend it and run again", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; finished cells are kept, run the same command again to go on", file=sys.stderr)
        return 130


def run(args: argparse.Namespace) -> int | None:
    """Each command imports what it needs: a dry run should not wait for pandas."""
    if args.command == "read":
        from runners import read

        return read.main(args.file, args.engine, args.json, args.num_draft_tokens)
    if args.command == "audit-sglang":
        from runners import sglang_audit

        return sglang_audit.write()
    if args.command == "patch":
        from runners import sglang_patch

        return sglang_patch.main(args.action, args.sglang, args.python)
    if args.command == "new-profile":
        from runners import new_profile

        return new_profile.write(args.name, args.model, args.drafter, args.python)
    from runners import paths, profile

    if args.command == "book" and args.runs.endswith(".tar.gz"):
        from runners import archives, book

        runs = paths.runs_root(args.runs)
        print(f"book: {book.build(runs, archives.profile_of(runs), paths.BUILD / 'book')}")
        return 0
    chosen = profile.load(args.profile)
    runs = paths.runs_root(args.runs) if hasattr(args, "runs") else None
    if args.command == "report":
        from runners import report

        return report.report(chosen, args.profile, args.depth, args.runs, dry_run=args.dry_run, only=args.only)
    if args.command == "plan":
        from runners import plan

        return plan.show(chosen, args.depth, runs)
    if args.command == "measure":
        from runners import measure

        outcome = measure.configuration(chosen, args.configuration, args.depth, runs, args.round, strict=True)
        print(f"{args.configuration}: {outcome.status}" + (f": {outcome.reason}" if outcome.reason else ""))
        return 0
    if args.command == "forecast":
        from runners import forecasts

        return forecasts.show(chosen, args.depth, runs)
    if args.command == "serve":
        from runners import restore

        return restore.serve(chosen, runs, args.configuration, args.use, args.port)
    if args.command == "book":
        from runners import book

        index = book.build(runs, chosen.name, book.place(chosen.simulated))
        print(f"book: {index}")
        return 0
    if args.command == "preflight":
        from runners import preflight

        return preflight.show(chosen, args.configuration)
    if args.command == "compare":
        from runners import compare

        return compare.show(args.a, args.b, chosen.name, args.other_profile)
    if args.command == "share":
        from runners import archives

        out = archives.share(chosen, runs, paths.Path(args.out or f"{chosen.name}-runs.tar.gz"))
        print(f"{out}: {out.stat().st_size / 1e6:.1f} MB; another person reads it with: make book RUNS={out.name}")
        return 0
    if args.command == "rehearse":
        from runners import rehearsal

        return rehearsal.rehearse(chosen, args.faults)
    if args.command == "publish":
        from runners import publish

        if args.machine is not None:
            return publish.elsewhere(chosen, runs, args.machine)
        return publish.publish(chosen, runs)
    if args.command == "drafter":
        from runners import training, variants

        if args.scaling:
            return variants.scaling(chosen)
        if args.variant:
            return variants.publish_variant(chosen, args.variant)
        return training.make(chosen, args.stage or list(training.STAGES), minutes=args.minutes)
    if args.command == "align":
        from runners import alignment_run

        parts = args.part or list(alignment_run.PARTS)
        return alignment_run.run(chosen, runs, parts, only=args.configuration, causes=args.cause)
    if args.command == "diagnose":
        from runners import diagnose

        return diagnose.show(chosen, args.configuration, runs)
    if args.command == "readme":
        from runners import readme

        return readme.write(chosen, runs)
    if args.command == "setup":
        from runners import setup

        return setup.setup(chosen, args.engine)
    raise UserError(f"No command '{args.command}'.")


if __name__ == "__main__":
    sys.exit(main())
