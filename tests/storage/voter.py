"""A process that votes until it is told to stop, or killed. It tells of each vote once that is stored."""

import multiprocessing

from crowdrank.storage import Collection

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["crowdrank.storage"])


class Voter:
    """The process, seen from outside."""

    def __init__(self, place, name, times):
        self.ear, mouth = _context.Pipe(duplex=False)
        self._process = _context.Process(target=vote, args=(place, name, times, mouth))
        self._process.start()
        mouth.close()

    def is_alive(self):
        return self._process.is_alive()

    def kill(self):
        self._process.kill()

    def heard(self):
        """All that it has told until it ended."""
        told = []
        try:
            while True:
                told.append(self.ear.recv())
        except (EOFError, OSError):
            self._process.join()
            self.ear.close()
            return told


def vote(place, name, times, mouth):
    with Collection.open(place) as collection:
        items = sorted(collection.items.all())
        who = collection.annotators.add([name], actor="admin")[0]
        for _ in range(times):
            asked = collection.questions.assign(who, items[0], items[1], policy="random", probability=1.0)
            mouth.send(collection.questions.vote(asked.token, asked.left, annotator=who).seq)
