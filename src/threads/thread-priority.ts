import { setPriority } from 'node:os';
import { nativeThreadId } from './processor-time.ts';

/** A third of the weight of a thread with priority 0. */
const BACKGROUND_PRIORITY = 5;

/**
 * Lets a thread give way to the others of the process, for good, where the system has priorities of threads. Without that, three busy
 * threads would leave the main thread less than half of two processors, which 200 requests a second need.
 * @param id of a thread of this process, see {@link nativeThreadId}; default: the current one
 */
export function runInBackground(id: number | undefined = nativeThreadId()): void {
  if (id === undefined) {
    return;
  }
  try {
    setPriority(id, BACKGROUND_PRIORITY);
  } catch {
    // The thread keeps its priority, where a sandbox forbids to change it.
  }
}
