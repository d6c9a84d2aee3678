"""What counts as life and what as progress, without a process: snapshots made by hand."""

from runners.serve.liveness import ProgressMonitor, Snapshot


def at(seconds, cpu=0.0, read=0, rss=10**8, log=0):
    return Snapshot(seconds, cpu_seconds=cpu, read_bytes=read, rss=rss, log_bytes=log)


def test_cpu_alone_is_life_and_no_progress():
    monitor = ProgressMonitor(at(0))
    monitor.observe(at(2, cpu=2))
    assert (monitor.moved, monitor.life, monitor.progress) == (["CPU"], 2, 0)
    monitor.observe(at(4, cpu=4, read=10**6))
    assert (monitor.moved, monitor.life, monitor.progress) == (["CPU", "bytes read"], 4, 4)


def test_a_line_is_news_once_whatever_its_time_of_day():
    monitor = ProgressMonitor(at(0))
    monitor.observe_line("[2026-01-31 12:00:00] waiting for rank 3")
    monitor.observe(at(2, log=40))
    assert monitor.moved == ["log"] and monitor.progress == 2
    monitor.observe_line("[2026-01-31 12:00:02] waiting for rank 3")
    monitor.observe(at(4, log=80))
    assert monitor.moved == [] and (monitor.life, monitor.progress) == (2, 2)
    monitor.observe_line("[2026-01-31 12:00:04] rank 3 is here")
    monitor.observe(at(6, log=120))
    assert monitor.moved == ["log"] and monitor.life == 6


def test_noise_is_no_life():
    monitor = ProgressMonitor(at(0))
    monitor.observe(at(2, cpu=0.03, read=4096, rss=10**8 + 4096))
    assert monitor.moved == [] and monitor.life == 0
