"""A process that votes until it is killed, and reports each vote once it is stored."""

import multiprocessing

from crowdrank.storage import Collection

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["crowdrank.storage"])


class Voter:
    """Controls the voting process."""

    def __init__(self, location, name, times):
        self.receiver, sender = _context.Pipe(duplex=False)
        self._process = _context.Process(target=vote, args=(location, name, times, sender))
        self._process.start()
        sender.close()

    def is_alive(self):
        return self._process.is_alive()

    def kill(self):
        self._process.kill()

    def reported(self):
        """Return the votes that it reported before it ended."""
        reported = []
        try:
            while True:
                reported.append(self.receiver.recv())
        except (EOFError, OSError):
            self._process.join()
            self.receiver.close()
            return reported


def vote(location, name, times, sender):
    with Collection.open(location) as collection:
        items = sorted(collection.items.all())
        who = collection.annotators.add([name], actor="admin")[0]
        for _ in range(times):
            asked = collection.assignments.create(who, items[0], items[1], policy="random", probability=1.0)
            sender.send(collection.votes.record(asked.token, asked.left, annotator=who).seq)
