"""`specverdict drafter`: make the profile's own EAGLE-3 drafter: answers, states, training."""

import argparse

from runners.commands import arguments
from runners.drafter import retrain, train
from runners.profiles.load import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_profile(parser)
    parser.add_argument("--stage", action="append", choices=train.STAGES, help="only this stage (may be repeated)")
    parser.add_argument("--minutes", type=float, help="stop training after so many minutes; run again to continue")
    parser.add_argument("--variant", help="train and publish this variant (of the profile's training section) instead")
    parser.add_argument("--scaling", action="store_true", help="train on less text too: data/drafters/scaling.csv")


def main(args: argparse.Namespace) -> int:
    profile = load(args.profile)
    if args.scaling:
        return retrain.scaling(profile)
    if args.variant:
        return retrain.publish_variant(profile, args.variant)
    return train.make(profile, args.stage or list(train.STAGES), minutes=args.minutes)
