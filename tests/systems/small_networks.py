"""Networks small enough to be trained in a test, and what they learn from."""

import numpy as np

from rejoinder.model import Assignment, train_model
from rejoinder.recipe import Recipe
from rejoinder.tasks.build import Cut

TOPICS = {
    "sound": "alsa mixer volume",
    "disk": "partition mount fstab",
    "wifi": "driver firmware router",
    "screen": "xorg resolution nvidia",
    "printer": "cups queue toner",
    "boot": "grub kernel initrd",
    "mail": "postfix imap relay",
    "shell": "bash alias prompt",
}
ENCODER = {"kind": "bag", "embedding": 16, "hidden": 16, "rarest": 1, "dropout": 0.0}
TRAINING = {"epochs": 12, "batch": 16, "rate": 0.02, "patience": 0}


def cuts(count, seed):
    """Questions that name a topic; answers share no word with them, only the topic's other words."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        topic = list(TOPICS)[int(rng.integers(len(TOPICS)))]
        words = " ".join(rng.permutation(TOPICS[topic].split())[:2])
        yield Cut(
            (("a", f"my {topic} is broken"), ("b", "hello"), ("a", "please help")), (f"try {words} {number % 7}",)
        )


def recipe(match, kind="bag", **stage):
    network = {"encoder": ENCODER | {"kind": kind}, "match": match, "codes": 4}
    stages = [{"network": network, "training": TRAINING} | stage]
    return Recipe(about="a test", system="neural-ranker", settings={"stages": stages}, name=match)


def trained(tasks, made, out, **more):
    return train_model(Assignment(recipe=made, train=tasks["train"], dev=tasks["dev"]), out, **more)
