import os
import threading
from concurrent.futures import ThreadPoolExecutor

from services.priority import step_back


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_a_thread_steps_back_with_those_that_it_starts_and_no_other() -> None:
    usual = niceness()
    with ThreadPoolExecutor(1, initializer=step_back) as executor:
        assert executor.submit(niceness).result() > usual
        started: list[int] = []

        def start() -> None:
            thread = threading.Thread(target=lambda: started.append(niceness()))
            thread.start()
            thread.join()

        executor.submit(start).result()
        assert started[0] > usual
    assert niceness() == usual


def test_who_is_nice_already_steps_back_from_there() -> None:
    def nice() -> int:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 12)
        step_back()
        once = niceness()
        step_back()
        assert niceness() <= 19
        return once

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(nice).result() > 12, "to raise a priority takes a right that we may not have"
