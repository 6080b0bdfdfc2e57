"""Who gets a place among the service's connections, and who gives way."""

from olaf.schedule.places import Place, Places, one_reader

ROOM = 64


class Doors:
    """Places, and the connections that were ended."""

    def __init__(self) -> None:
        self.places = Places(ROOM)
        self.ended: list[int] = []
        self.began = 0

    def open(self, address: str, *, admitted: bool = False, busy: bool = False) -> Place | None:
        number = self.began
        self.began += 1
        place = self.places.take(address, lambda: self.ended.append(number))
        if place is not None and admitted:
            self.places.admit(place)
            place.busy = busy
        return place


def test_an_address_has_a_part_of_the_places_and_its_oldest_stranger_goes() -> None:
    doors = Doors()
    for _ in range(500):
        assert doors.open("10.0.0.1")
    assert len(doors.places) == 4
    assert doors.ended == list(range(496))
    assert doors.open("10.0.0.2")
    assert (len(doors.places), doors.places.closed["gave_way"]) == (5, 496)


def test_strangers_of_many_addresses_leave_room_for_the_admitted() -> None:
    doors = Doors()
    for last in range(100):
        assert doors.open(f"10.0.0.{last}")
    assert len(doors.places) == 16
    assert doors.ended == list(range(84))


def test_the_greediest_address_gives_way_first() -> None:
    doors = Doors()
    doors.open("10.0.0.0")
    for _ in range(3):
        for last in range(1, 6):
            doors.open(f"10.0.0.{last}")
    assert doors.ended == []
    assert doors.open("10.0.0.9")
    assert doors.ended == [1]


def test_who_waits_for_an_answer_keeps_its_place_and_who_is_idle_does_not() -> None:
    doors = Doors()
    waiting = [doors.open("10.0.0.1", admitted=True, busy=True) for _ in range(ROOM)]
    assert all(waiting)
    assert doors.open("10.0.0.2") is None
    assert (doors.ended, doors.places.closed["full"]) == ([], 1)
    idle = waiting[7]
    assert idle is not None
    idle.busy = False
    assert doors.open("10.0.0.2")
    assert doors.ended == [7]
    # From here on strangers have that place among themselves.
    assert doors.open("10.0.0.3")
    assert doors.ended == [7, ROOM + 1]


def test_a_connection_that_ended_leaves_its_place() -> None:
    doors = Doors()
    for admitted in (True, False):
        place = doors.open("10.0.0.1", admitted=admitted)
        assert place is not None
        doors.places.leave(place)
        doors.places.admit(place)
        doors.places.leave(place)
        assert len(doors.places) == 0
    assert doors.ended == []


def test_addresses_of_one_network_are_one_reader() -> None:
    assert one_reader("2001:db8::1") == one_reader("2001:db8::ffff:1%eth0")
    assert one_reader("2001:db8::1") != one_reader("2001:db8:0:1::1")
    assert one_reader("::ffff:10.0.0.1") == one_reader("10.0.0.1")
    assert one_reader("10.0.0.1") != one_reader("10.0.0.2")
