import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import type { ObjectVerdict } from '../../engine/index.ts';
import { EvaluationHost } from '../../evaluation/index.ts';
import { controlledCluster } from '../../runtime/index.ts';
import type { AuditResult } from '../audit-result.ts';
import { Auditor } from '../auditor/auditor.ts';
import { AuditorExceptions } from '../auditor/auditor-exceptions.ts';
import { LookedUpObjects } from '../auditor/looked-up-objects.ts';
import type { Coverage } from '../coverage.ts';
import type { AuditShare } from '../members/audit-share.ts';
import { INSTALLATION } from './sample-policies.ts';

const log = pino({ level: 'silent' });
/** Several times what a change may take: the machine may be busy. Milliseconds. */
const PATIENCE_MS = 60_000;
const POLL_MS = 20;

/** An auditor that runs, and what its host was asked. */
export class RunningAuditor implements AsyncDisposable {
  readonly auditor: Auditor;
  /** `policy namespace/name` of each evaluation. */
  readonly evaluated: string[] = [];
  /** Called instead of an evaluation. */
  around: ((evaluate: () => Promise<readonly ObjectVerdict[]>) => Promise<readonly ObjectVerdict[]>) | undefined;
  readonly #host: EvaluationHost;
  readonly #stop = new AbortController();
  readonly #ended: Promise<unknown>;

  constructor(cluster: Cluster, share?: AuditShare) {
    const lookups = new LookedUpObjects();
    this.#host = new EvaluationHost({
      cacheDir: join(tmpdir(), 'portcullis-auditor'),
      workers: 2,
      lookups: { cluster, log, onChange: (change) => lookups.apply(change) },
      log: () => undefined,
    });
    const controlled = controlledCluster({ cluster, log });
    const host: Pick<EvaluationHost, 'serve' | 'evaluate'> = {
      serve: (policies) => this.#host.serve(policies),
      evaluate: async (object, options) => {
        const { namespace = '', name = '' } = object.object['metadata'] as { namespace?: string; name?: string };
        this.evaluated.push(...[...(options?.policies ?? [])].map((id) => `${id} ${namespace}/${name}`));
        const evaluate = (): Promise<readonly ObjectVerdict[]> => this.#host.evaluate(object, options);
        return await (this.around?.(evaluate) ?? evaluate());
      },
    };
    const exceptions = new AuditorExceptions({ cluster, host: this.#host, log });
    const shared = share === undefined ? {} : { share };
    this.auditor = new Auditor({
      controlled,
      host,
      lookups,
      exceptions,
      ...shared,
      installation: INSTALLATION,
      atOnce: 2,
    });
    this.#ended = this.#host
      .start()
      .then(() =>
        Promise.all([controlled.caches, exceptions, this.auditor].map((part) => part.start(this.#stop.signal))),
      );
  }

  /** `policy result namespace/name` of all findings. */
  get findings(): readonly string[] {
    return [...this.auditor.namespaces()].flatMap((namespace) => this.auditor.of(namespace).map(textOf)).toSorted();
  }

  coverage(id: string): readonly Coverage[] {
    return this.auditor.coverage(id) ?? [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#ended;
    await this.#host[Symbol.asyncDispose]();
  }
}

/** `policy result kind namespace/name`. */
export function textOf({ policy: name, result, object: { kind, namespace = '', name: object } }: AuditResult): string {
  return `${name} ${result} ${kind} ${namespace}/${object}`;
}

/** Waits until something has the expected value. */
export async function eventually(what: () => unknown, expected: unknown): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      assert.deepEqual(await what(), expected);
      return;
    } catch (error) {
      if (performance.now() > deadline) {
        throw error;
      }
      await sleep(POLL_MS);
    }
  }
}
