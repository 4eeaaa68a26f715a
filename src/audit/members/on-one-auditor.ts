import type { Runnable } from '../../runtime/index.ts';
import type { AuditShare } from './audit-share.ts';

/** What one auditor does for the whole cluster: runs while this one writes about objects without a namespace. */
export function onOneAuditor(share: AuditShare, runnable: Runnable): Runnable {
  const isThisOne = (): boolean => share.mayWrite('');
  return {
    name: runnable.name,
    async start(signal) {
      while (await comesTrue(share, isThisOne, signal)) {
        const stop = new AbortController();
        const either = AbortSignal.any([signal, stop.signal]);
        const running = runnable.start(either);
        void comesTrue(share, () => !isThisOne(), either).then(() => stop.abort());
        await running;
        stop.abort();
      }
    },
  };
}

/** Whether it does before the signal is aborted. */
async function comesTrue(share: AuditShare, condition: () => boolean, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = (): void => {
    if (signal.aborted || condition()) {
      resolve();
    }
  };
  const end = share.onChange(look);
  signal.addEventListener('abort', look, { once: true });
  look();
  await promise;
  end();
  signal.removeEventListener('abort', look);
  return !signal.aborted;
}
