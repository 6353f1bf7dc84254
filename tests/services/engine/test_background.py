import os
import threading
from concurrent.futures import ThreadPoolExecutor

from services.engine.background import step_back


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
