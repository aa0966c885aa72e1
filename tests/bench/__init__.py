"""`make bench`: what takes how long, each figure beside its bound. Timings never decide a test.

`python -m tests.bench [PART ...] [--quick] [--record]`; the parts are those of `tests.bench.__main__`.

What is measured runs in a fresh process (`tests.bench.child`), against a stub server in another one, so that CPU
time and memory are the client's own.
"""
