// Random faults between a reflector and a real API server whose objects change: for the soak, and for a test.
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
/** Silence limit of watches. Far below the default, because each heal is waited for. */
const SILENCE_LIMIT_MS = 1_000;
/** Limit of an attempt that began during a fault; also below the default. */
const PATIENCE_MS = 3_000;
/** Parallel writes when the objects are created. */
const WRITERS = 8;
/** Time limit after a heal, after which the run fails. */
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
  /** Duration of the run; each fault occurs at least once. Milliseconds. Default: 0. */
  readonly durationMs?: number;
  /** Changes per second, also during faults. */
  readonly changesPerSecond: number;
  /** Seed of the order of faults. */
  readonly seed: number;
  /** Called after each fault. */
  readonly onRound?: (round: FaultRound, report: ReflectorReport) => void;
}

/** A fault and its heal. */
export interface FaultRound {
  readonly fault: string;
  /** Duration of the fault. Milliseconds. */
  readonly faultMs: number;
  /** Time from the heal until the cache equals the server's state. Milliseconds; Infinity if it never does. */
  readonly recoveryMs: number;
}

export interface FaultRunResult {
  readonly rounds: readonly FaultRound[];
  /** Expired versions: each needs a full list. */
  readonly expiries: number;
  /** Full lists at the proxy, including the first one. */
  readonly lists: number;
  /** Lists that a fault interrupted. */
  readonly brokenLists: number;
  readonly watches: number;
  readonly changes: number;
  readonly report: ReflectorReport;
}

/** Pseudo-random numbers from 0 to below 1 (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Runs faults one after the other. */
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
  // A separate generator: the number of changes depends on timing.
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
        // Between two watches there is none to expire.
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

/** Waits until a list that the last fault made necessary is complete. */
async function settled(reflector: Reflector): Promise<void> {
  const ends = performance.now() + GIVE_UP_MS;
  do {
    await sleep(500);
  } while (reflector.report.state !== 'watching' && performance.now() < ends);
}

function versionOf(object: KubernetesObject): string {
  return object.metadata.resourceVersion ?? '';
}

/** Endless faults in random order: each once before any repeats. */
function* faultsInTurn(random: () => number): Generator<MadeFault, never> {
  for (;;) {
    yield* shuffled(FAULTS, random);
  }
}

/** The items in random order (Fisher-Yates). */
function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [result[last], result[other]] = [result[other] as T, result[last] as T];
  }
  return result;
}

/** Waits until the cache equals the server's state. Returns the time since `since`, or Infinity. */
async function equality(
  direct: KubernetesCluster,
  namespace: string,
  cache: ReadonlyMap<string, string>,
  since: number,
): Promise<number> {
  // Changes have stopped, so the list is final.
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

  /** Changes objects until it is stopped. */
  run(perSecond: number): { end(): Promise<void> } {
    let isRunning = true;
    const startedAt = performance.now();
    const before = this.changes;
    const running = (async (): Promise<void> => {
      while (isRunning) {
        await this.#change();
        const due = startedAt + ((this.changes - before) / perSecond) * 1000;
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
