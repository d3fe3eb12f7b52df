#!/usr/bin/python3
"""From pip install to a dashboard in five minutes: a spam filter on 5,574 real messages, learned on a server.

    quickstart.py                                  the server at $PERCEPTROND_SERVER, else 127.0.0.1:7600
    quickstart.py --data deploy/data/sms_spam.tsv
"""

import argparse
import pathlib
import sys

from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score, train_test_split

from perceptrond import Client
from perceptrond.sklearn import PerceptrondClassifier

DATA = pathlib.Path(__file__).resolve().parents[3] / "deploy/data/sms_spam.tsv"


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--data", type=pathlib.Path, default=DATA, metavar="FILE", help=f"label, tab, text; a line of titles first (default: {DATA})")
    flags.add_argument("--model", default="spam", metavar="NAME", help="the model to publish (default: spam)")
    chosen = flags.parse_args()

    client = Client()
    if f"models/{chosen.model}" in (model.name for model in client.list()):
        sys.exit(f"there is a model {chosen.model} already: delete it (perceptronctl delete {chosen.model}), or name another one (--model {chosen.model}-2)")

    # 1. The data: texts, which the server splits into words.
    lines = [line.split("\t", 1) for line in chosen.data.read_text().splitlines()[1:]]
    messages, labels = [text for _, text in lines], [label for label, _ in lines]
    train, test, train_labels, test_labels = train_test_split(messages, labels, test_size=0.2, random_state=1)

    # 2. How well it will do: each fold learns a model of its own on the server, which is deleted with it.
    spam_filter = PerceptrondClassifier(prediction="averaged", max_iter=10, random_state=1)
    print(f"accuracy in cross-validation: {cross_val_score(spam_filter, train, train_labels, cv=3).mean():.3f}")

    # 3. The filter itself, until a pass changes nothing.
    spam_filter.set_params(verbose=True).fit(train, train_labels)
    print(f"accuracy on {len(test)} other messages: {accuracy_score(test_labels, spam_filter.predict(test)):.3f}")

    # 4. Published under a name, it goes on learning from the messages that come, and stays on the server.
    before = spam_filter.publish(chosen.model).report()
    spam_filter.partial_fit(test, test_labels)
    report = client.report(chosen.model)
    print(f"{chosen.model} has learned {report.examples - before.examples} more messages, with {report.mistakes - before.mistakes} mistakes")
    print("its dashboard is the status page of the server, by default http://127.0.0.1:7601/")


if __name__ == "__main__":
    main()
