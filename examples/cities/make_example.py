"""Generate the files of this folder: thirty simulated annotators judge which of two cities has more people."""

from __future__ import annotations

import sys
from pathlib import Path

from crowdrank.simulation import Crowd, mixed_crowd

# Thousands of people in the urban agglomeration in 2018 (United Nations, World Urbanization Prospects 2018).
PEOPLE = {
    "Tokyo": 37468,
    "Delhi": 28514,
    "Shanghai": 25582,
    "São Paulo": 21650,
    "Mexico City": 21581,
    "Cairo": 20076,
    "Mumbai": 19980,
    "Beijing": 19618,
    "Dhaka": 19578,
    "Osaka": 19281,
    "New York": 18819,
    "Karachi": 15400,
    "Buenos Aires": 14967,
    "Chongqing": 14838,
    "Istanbul": 14751,
    "Kolkata": 14681,
    "Manila": 13482,
    "Lagos": 13463,
    "Rio de Janeiro": 13293,
    "Tianjin": 13215,
    "Kinshasa": 13171,
    "Guangzhou": 12638,
    "Los Angeles": 12458,
    "Moscow": 12410,
    "Shenzhen": 11908,
    "Lahore": 11738,
    "Bangalore": 11440,
    "Paris": 10901,
    "Bogotá": 10574,
    "Jakarta": 10517,
    "Chennai": 10456,
    "Lima": 10391,
    "Bangkok": 10156,
    "Seoul": 9963,
    "Nagoya": 9507,
    "Hyderabad": 9482,
    "London": 9046,
    "Tehran": 8896,
    "Chicago": 8864,
    "Chengdu": 8813,
}

NAMES = [
    "ann",
    "bob",
    "carla",
    "dev",
    "elif",
    "farid",
    "grace",
    "hugo",
    "ines",
    "jonas",
    "kemi",
    "liam",
    "mina",
    "noor",
    "omar",
    "paula",
    "quinn",
    "rosa",
    "sven",
    "tara",
    "umar",
    "vera",
    "wes",
    "ximena",
    "yuki",
    "zoe",
    "amara",
    "boris",
    "chen",
    "dina",
]

KINDS = {"good": 13, "noisy": 8, "random": 3, "reversed": 3, "left": 2, "right": 1}


def make() -> Crowd:
    return mixed_crowd(PEOPLE, kinds=KINDS, votes_each="uniform(35,65)", scale=3.0, log=True, names=NAMES, seed=0)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for path in make().write(folder):
        print(path)
