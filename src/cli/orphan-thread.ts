// A thread that ends its process when the supervisor is gone, whatever the main thread does.
import { workerData } from 'node:worker_threads';

/** Interval of the check. Milliseconds. */
const POLL_MS = 1_000;
/** How long a process may take to stop after its supervisor is gone. Milliseconds. */
const ORPHAN_MS = 5_000;

/** The id of the supervisor's process. */
const supervisor: unknown = workerData;

const check = setInterval(() => {
  // A process whose parent is gone gets another one.
  if (process.ppid !== supervisor) {
    clearInterval(check);
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), ORPHAN_MS);
  }
}, POLL_MS);
