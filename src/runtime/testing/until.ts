import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a condition holds. The test's own time limit applies. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await sleep(2);
  }
}
