// Faults in random order between a reflector and a real API server whose objects change: for the soak, and for a test.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { KubernetesCluster, listAll, Reflector, tokenCredentials } from '../../src/cluster/index.ts';
import type { ReflectorReport } from '../../src/cluster/index.ts';
import { keyOf, keyText } from '../../src/resources/index.ts';
import type { KubernetesObject, ResourceType } from '../../src/resources/index.ts';
import type { Cluster as TestCluster } from '../cluster/cluster.ts';
import { FaultProxy } from './fault-proxy.ts';
import type { Fault } from './fault-proxy.ts';

const CONFIG_MAPS: ResourceType = {
  group: '',
  version: 'v1',
  resource: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};
/** A watch that brings nothing for this long is made anew. Far below what is used otherwise, because a heal is waited for. */
const SILENCE_LIMIT_MS = 1_000;
/** As long as an attempt that began during a fault may hang after it: also shorter than otherwise, for the same reason. */
const PATIENCE_MS = 1_000;
/** Writes at a time, when the objects are created. */
const WRITERS = 8;
/** After a heal, when something is wrong: then the run ends. */
const GIVE_UP_MS = 30_000;

type MadeFault = Fault | { readonly kind: 'expire' };

const FAULTS: readonly MadeFault[] = [
  { kind: 'cut' },
  { kind: 'freeze' },
  { kind: 'half-open' },
  { kind: 'slow', bytesPerSecond: 20_000, delayMs: 50 },
  { kind: 'status', status: 500 },
  { kind: 'status', status: 429 },
  { kind: 'status', status: 503 },
  { kind: 'expire' },
];

export interface FaultRunOptions {
  readonly objects: number;
  /** How long faults are made. Each is made at least once. Milliseconds. Default: 0. */
  readonly durationMs?: number;
  /** Changes a second, also while something is wrong. */
  readonly changesPerSecond: number;
  /** The same number makes the same faults in the same order. */
  readonly seed: number;
  /** Told after each. */
  readonly onRound?: (round: FaultRound, report: ReflectorReport) => void;
}

/** One fault and its heal. */
export interface FaultRound {
  readonly fault: string;
  /** How long it was there. Milliseconds. */
  readonly faultMs: number;
  /** From the heal until the cache was equal to the server's state. Milliseconds; Infinity when it never was. */
  readonly recoveryMs: number;
}

export interface FaultRunResult {
  readonly rounds: readonly FaultRound[];
  /** Versions that were said to be too old: each needs a full list. */
  readonly expiries: number;
  /** Full lists that came to the proxy, the first one included. */
  readonly lists: number;
  /** Lists that a fault hit before they were whole. */
  readonly brokenLists: number;
  readonly watches: number;
  readonly changes: number;
  readonly report: ReflectorReport;
}

/** Numbers from 0 to below 1 that a seed decides (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Runs faults one after the other; see the fields of the result for what it finds. */
export async function runFaults(server: TestCluster, options: FaultRunOptions): Promise<FaultRunResult> {
  await using proxy = await FaultProxy.start(server);
  const credentials = tokenCredentials(server.adminToken);
  using direct = new KubernetesCluster({ server: server.url, ca: readFileSync(server.caFile, 'utf8'), credentials });
  using proxied = new KubernetesCluster(
    { server: proxy.url, ca: proxy.ca, credentials },
    { connectTimeoutMs: PATIENCE_MS, staleConnectionMs: PATIENCE_MS },
  );
  const random = seededRandom(options.seed);
  const namespace = `faults-${options.seed}`;
  await server.createNamespace(namespace);
  // Of its own: how many changes there are is a matter of time.
  const churn = new Churn(direct, namespace, seededRandom(options.seed + 1));
  await churn.fill(options.objects);

  const cache = new Map<string, string>();
  let brokenLists = 0;
  const reflector = new Reflector({
    cluster: proxied,
    onError: (_error, during) => {
      brokenLists += during === 'list' ? 1 : 0;
    },
    type: CONFIG_MAPS,
    namespace,
    silenceLimitMs: SILENCE_LIMIT_MS,
    handler: {
      replace(items) {
        cache.clear();
        items.forEach((item) => cache.set(keyText(keyOf(item)), versionOf(item)));
      },
      apply({ type, object }) {
        if (type === 'DELETED') {
          cache.delete(keyText(keyOf(object)));
        } else {
          cache.set(keyText(keyOf(object)), versionOf(object));
        }
      },
    },
  });
  const stop = new AbortController();
  const running = reflector.start(stop.signal);
  await reflector.synced;

  const rounds: FaultRound[] = [];
  let expiries = 0;
  const ends = performance.now() + (options.durationMs ?? 0);
  try {
    for (const fault of faultsInTurn(random)) {
      if (rounds.length >= FAULTS.length && performance.now() >= ends) {
        break;
      }
      const faultMs = 300 + random() * 2_200;
      const changing = churn.run(options.changesPerSecond);
      if (fault.kind === 'expire') {
        expiries += 1;
        await sleep(faultMs);
        // Between two watches there is none that could be told.
        while (proxy.expireWatches() === 0) {
          await sleep(5);
        }
      } else {
        proxy.inject(fault);
        await sleep(faultMs);
        proxy.heal();
      }
      const healed = performance.now();
      await changing.end();
      const recoveryMs = await equality(direct, namespace, cache, healed);
      const name = fault.kind === 'status' ? `status ${fault.status}` : fault.kind;
      const round = { fault: name, faultMs, recoveryMs };
      rounds.push(round);
      options.onRound?.(round, reflector.report);
      if (recoveryMs === Infinity) {
        break;
      }
    }
    await settled(reflector);
  } finally {
    stop.abort();
    await running;
  }
  return { rounds, expiries, brokenLists, ...proxy.counts, changes: churn.changes, report: reflector.report };
}

/** Waits until a list that the last fault made necessary is whole. */
async function settled(reflector: Reflector): Promise<void> {
  const ends = performance.now() + GIVE_UP_MS;
  do {
    await sleep(500);
  } while (reflector.report.state !== 'watching' && performance.now() < ends);
}

function versionOf(object: KubernetesObject): string {
  return object.metadata.resourceVersion ?? '';
}

/** Faults without end, in random order: each once before any comes again. */
function* faultsInTurn(random: () => number): Generator<MadeFault, never> {
  for (;;) {
    yield* shuffled(FAULTS, random);
  }
}

/** The same items in random order (Fisher-Yates). */
function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [result[last], result[other]] = [result[other] as T, result[last] as T];
  }
  return result;
}

/** Waits until the cache is what the server has. The time since `since`, or Infinity. */
async function equality(
  direct: KubernetesCluster,
  namespace: string,
  cache: ReadonlyMap<string, string>,
  since: number,
): Promise<number> {
  // Nothing changes any more: what is listed now is what there is.
  const { items } = await listAll(direct, CONFIG_MAPS, { namespace });
  const expected = new Map(items.map((item) => [keyText(keyOf(item)), versionOf(item)]));
  while (performance.now() - since < GIVE_UP_MS) {
    if (isSame(expected, cache)) {
      return performance.now() - since;
    }
    await sleep(5);
  }
  return Infinity;
}

function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([key, value]) => other.get(key) === value);
}

/** Creates, changes and deletes config maps. */
class Churn {
  changes = 0;
  readonly #cluster: KubernetesCluster;
  readonly #namespace: string;
  readonly #random: () => number;
  readonly #names: string[] = [];
  #next = 0;

  constructor(cluster: KubernetesCluster, namespace: string, random: () => number) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#random = random;
  }

  async fill(count: number): Promise<void> {
    const writers = Array.from({ length: WRITERS }, async () => {
      while (this.#next < count) {
        await this.#create();
      }
    });
    await Promise.all(writers);
  }

  /** Changes objects until it is told to end. */
  run(perSecond: number): { end(): Promise<void> } {
    let isRunning = true;
    const begun = performance.now();
    const before = this.changes;
    const running = (async (): Promise<void> => {
      while (isRunning) {
        await this.#change();
        const due = begun + ((this.changes - before) / perSecond) * 1000;
        await sleep(Math.max(0, due - performance.now()));
      }
    })();
    return {
      end: () => {
        isRunning = false;
        return running;
      },
    };
  }

  async #change(): Promise<void> {
    this.changes += 1;
    const dice = this.#random();
    const index = Math.floor(this.#random() * this.#names.length);
    const name = this.#names[index];
    if (dice < 0.15 || name === undefined) {
      await this.#create();
    } else if (dice < 0.3) {
      this.#names[index] = this.#names.at(-1) ?? name;
      this.#names.pop();
      await this.#cluster.delete(CONFIG_MAPS, { namespace: this.#namespace, name });
    } else {
      const body = { data: { value: String(this.changes) } };
      await this.#cluster.patch(CONFIG_MAPS, { namespace: this.#namespace, name }, { type: 'merge', body });
    }
  }

  async #create(): Promise<void> {
    const name = `object-${this.#next++}`;
    const metadata = { namespace: this.#namespace, name };
    await this.#cluster.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata,
      data: { value: 'new', padding: 'x'.repeat(500) },
    });
    this.#names.push(name);
  }
}
