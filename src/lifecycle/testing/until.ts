import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until something holds. Tests end by their own limit when it never does. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await sleep(2);
  }
}
