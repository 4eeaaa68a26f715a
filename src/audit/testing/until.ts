import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a condition holds; a test that waits in vain ends by its own timeout. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await sleep(2);
  }
}
