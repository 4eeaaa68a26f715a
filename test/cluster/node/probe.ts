// Probes of containers. Only `httpGet` is supported, because the product uses no other.
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProbeSpec } from './pod.ts';

/** The period until a probe first succeeds, so that tests do not wait for the probe's own period. Milliseconds. */
const FIRST_PERIOD_MS = 100;
/** The default period in Kubernetes. Seconds. */
const PERIOD_SECONDS = 10;
const FAILURE_THRESHOLD = 3;

export interface ProbeOptions {
  readonly spec: ProbeSpec;
  readonly address: string;
  readonly port: number;
  /** The result before the first probe: true for liveness, false for readiness. */
  readonly initial: boolean;
  /** Called when the result changes. */
  readonly onChange: (isGood: boolean) => void;
}

/** Runs a probe until `signal` is aborted or, with `untilGood`, until it succeeds. */
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
    // A failure counts once per period, because failureThreshold is a number of periods.
    const isCounted = isAnswered || performance.now() - countedAt >= periodMs - FIRST_PERIOD_MS;
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
    await pause(isAnswered ? periodMs : FIRST_PERIOD_MS);
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
