// Probes of containers: HTTP only, which is what the product has.
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProbeSpec } from './pod.ts';

/** Until a probe has succeeded it is tried this often, so that tests need not wait for a period. Milliseconds. */
const EAGER_MS = 100;
/** What Kubernetes sets where a probe says nothing. Seconds. */
const PERIOD_SECONDS = 10;
const FAILURE_THRESHOLD = 3;

export interface ProbeOptions {
  readonly spec: ProbeSpec;
  readonly address: string;
  readonly port: number;
  /** How it counts before anything was asked: a container lives, and is not ready. */
  readonly initial: boolean;
  /** Told when it changes. */
  readonly onChange: (isGood: boolean) => void;
}

/** Asks until `signal` is aborted, or until it says `true` where that is all that is asked. */
export async function runProbe(options: ProbeOptions, signal: AbortSignal, { untilGood = false } = {}): Promise<void> {
  const { spec, initial, onChange } = options;
  const periodMs = (spec.periodSeconds ?? PERIOD_SECONDS) * 1000;
  const pause = (ms: number): Promise<unknown> => sleep(ms, undefined, { signal }).catch(() => undefined);
  let isGood = initial;
  let good = 0;
  let bad = 0;
  let countedAt = performance.now();
  await pause((spec.initialDelaySeconds ?? 0) * 1000);
  while (!signal.aborted) {
    const isAnswered = await isSuccess(options);
    // Eager attempts count only when they succeed: thresholds mean periods.
    const isCounted = isAnswered || performance.now() - countedAt >= periodMs - EAGER_MS;
    countedAt = isCounted ? performance.now() : countedAt;
    good = isAnswered ? good + 1 : 0;
    bad = isAnswered ? 0 : bad + (isCounted ? 1 : 0);
    const was = isGood;
    if (good >= (spec.successThreshold ?? 1)) {
      isGood = true;
    } else if (bad >= (spec.failureThreshold ?? FAILURE_THRESHOLD)) {
      isGood = false;
    }
    if (!signal.aborted && (isGood !== was || (!isGood && bad === (spec.failureThreshold ?? FAILURE_THRESHOLD)))) {
      onChange(isGood);
    }
    if (untilGood && isGood && isAnswered) {
      return;
    }
    await pause(isAnswered ? periodMs : EAGER_MS);
  }
}

function isSuccess({ spec, address, port }: ProbeOptions): Promise<boolean> {
  const { path = '/', scheme = 'HTTP' } = spec.httpGet ?? { port };
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const options = { host: address, port, path, timeout: (spec.timeoutSeconds ?? 1) * 1000, agent: false as const };
  const request =
    scheme === 'HTTPS'
      ? getHttps({ ...options, rejectUnauthorized: false })
      : getHttp({ ...options, headers: { 'user-agent': 'kube-probe' } });
  request.on('response', (response) => {
    response.resume();
    resolve(response.statusCode !== undefined && response.statusCode >= 200 && response.statusCode < 400);
  });
  request.on('timeout', () => request.destroy());
  request.on('error', () => resolve(false));
  request.on('close', () => resolve(false));
  return promise;
}
