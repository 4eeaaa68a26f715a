// Random writes by several managers to a real API server. After each write, the object and its managedFields are the same here.
// `node test/e2e/server-side-apply.full.test.ts --seconds 600 --seed 1` runs longer, and prints the seed of a difference.
// `--record src/apiserver/server-side-apply/testing/recorded-writes.json` records the first sessions, for tests without a server.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { writeFileSync } from 'node:fs';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { applyServerSide, applyStrategicMergePatch, keepManagerTimes, trackUpdate } from '../../src/apiserver/index.ts';
import type { ApplyConflicts } from '../../src/apiserver/index.ts';
import { apiVersionOf, applyJsonPatch, applyMergePatch, isJsonObject, PatchError } from '../../src/resources/index.ts';
import type { JsonObject, JsonValue, KubernetesObject } from '../../src/resources/index.ts';
import { MergeError } from '../../src/resources/structured-merge/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import { combine, Random, testedKinds, WIDGET_CRD } from './server-side-apply-kinds.ts';
import type { TestedKind } from './server-side-apply-kinds.ts';

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '15' },
    seed: { type: 'string', default: '1' },
    record: { type: 'string' },
  },
  strict: false,
});

const NAMESPACE = 'merge';
/** Number of writes to each object. */
const STEPS = 14;
/** Number of recorded writes of each object. */
const RECORDED_WRITES = 7;
const APPLIERS = ['alpha', 'beta', 'kubectl'];
const UPDATERS = ['gamma', 'delta', ...Array.from({ length: 10 }, (_, index) => `updater-${index}`)];

interface Answer {
  readonly status: number;
  readonly body: KubernetesObject & {
    readonly message?: string;
    readonly details?: { readonly causes?: readonly JsonObject[] };
  };
}

/** A write that is sent to the server, and computed here. */
interface Write {
  readonly what: string;
  readonly subresource?: 'status';
  readonly send: () => Promise<Answer>;
  /** Computes the object after the write, before defaults. Its managedFields are those of the request. */
  readonly make: () => KubernetesObject;
  readonly manager: string;
  readonly apply?: { readonly applied: KubernetesObject; readonly force: boolean };
}

class Session {
  readonly #cluster: Cluster;
  readonly #kind: TestedKind;
  readonly #random: Random;
  readonly #name: string;
  #live: KubernetesObject | undefined;
  readonly log: string[] = [];
  /** See src/apiserver/server-side-apply/recorded-writes.test.ts. */
  readonly record: object[] = [];
  /** The responses of the server. */
  readonly outcomes: string[] = [];
  writes = 0;

  constructor(cluster: Cluster, kind: TestedKind, seed: number) {
    this.#cluster = cluster;
    this.#kind = kind;
    this.#random = new Random(seed);
    this.#name = `x${seed}`;
  }

  async run(): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      const write = this.#write();
      this.log.push(write.what);
      await this.#check(write, await write.send());
      this.writes++;
    }
  }

  get #path(): string {
    const { group, version, resource } = this.#kind.definition;
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    return `${root}/namespaces/${NAMESPACE}/${resource}`;
  }

  get #apiVersion(): string {
    const { group, version } = this.#kind.definition;
    return group === '' ? version : `${group}/${version}`;
  }

  #request(
    method: string,
    path: string,
    query: Record<string, string>,
    body: unknown,
    contentType?: string,
  ): Promise<Answer> {
    const search = new URLSearchParams(query).toString();
    return this.#cluster.request<Answer['body']>(
      method,
      `${this.#path}${path}?${search}`,
      body,
      contentType === undefined ? {} : { contentType },
    );
  }

  #config(isWhole: boolean): KubernetesObject {
    const { definition, base, parts } = this.#kind;
    return combine([
      { apiVersion: this.#apiVersion, kind: definition.kind, metadata: { name: this.#name } },
      ...(isWhole ? [base(this.#random)] : []),
      ...this.#random
        .some(parts)
        .slice(0, 4)
        .map((part) => part(this.#random)),
    ]) as KubernetesObject;
  }

  #statusConfig(): KubernetesObject {
    const { definition, statusParts } = this.#kind;
    return combine([
      { apiVersion: this.#apiVersion, kind: definition.kind, metadata: { name: this.#name } },
      this.#random.pick(statusParts)(this.#random),
      ...(this.#random.chance(20) ? [{ metadata: { labels: { s: this.#random.pick(['1', '2']) } } }] : []),
    ]) as KubernetesObject;
  }

  #write(): Write {
    const random = this.#random;
    const { definition, statusParts } = this.#kind;
    const live = this.#live;
    const manager = random.pick(UPDATERS);
    if (live === undefined) {
      return random.chance(50) ? this.#create(manager) : this.#apply();
    }
    const roll = random.below(100);
    if (roll < 45) {
      return this.#apply();
    }
    if (roll < 55) {
      return this.#replace(live, manager);
    }
    if (roll < 65) {
      return this.#patch(live, manager, 'merge');
    }
    if (roll < 73) {
      return this.#patch(live, manager, definition.origin === 'builtin' ? 'strategic' : 'merge');
    }
    if (roll < 80) {
      return this.#jsonPatch(live, manager);
    }
    if (roll < 82) {
      return this.#reset(live, manager);
    }
    if (statusParts.length === 0) {
      return this.#apply();
    }
    return roll < 92 ? this.#patchStatus(live, manager) : this.#applyStatus();
  }

  #create(manager: string): Write {
    const body = this.#config(true);
    return {
      what: `create as ${manager}: ${JSON.stringify(body)}`,
      manager,
      send: () => this.#request('POST', '', { fieldManager: manager }, body),
      make: () => body,
    };
  }

  #apply(): Write {
    const manager = this.#random.pick(APPLIERS);
    const force = this.#random.chance(45);
    const applied = this.#config(this.#live === undefined || this.#random.chance(60));
    return this.#applying(applied, manager, force);
  }

  #applyStatus(): Write {
    return {
      ...this.#applying(this.#statusConfig(), this.#random.pick(APPLIERS), this.#random.chance(45), '/status'),
      subresource: 'status',
    };
  }

  #applying(applied: KubernetesObject, manager: string, force: boolean, suffix = ''): Write {
    return {
      what: `apply${suffix} as ${manager}${force ? ' with force' : ''}: ${JSON.stringify(applied)}`,
      manager,
      apply: { applied, force },
      send: () =>
        this.#request(
          'PATCH',
          `/${this.#name}${suffix}`,
          { fieldManager: manager, force: String(force) },
          applied,
          'application/apply-patch+yaml',
        ),
      make: () => {
        throw new Error('applies are not made');
      },
    };
  }

  #replace(live: KubernetesObject, manager: string): Write {
    const body = applyMergePatch(live as JsonObject, this.#config(false) as JsonObject);
    return {
      what: `update as ${manager}: ${JSON.stringify(body)}`,
      manager,
      send: () => this.#request('PUT', `/${this.#name}`, { fieldManager: manager }, body),
      make: () => body as KubernetesObject,
    };
  }

  #patch(live: KubernetesObject, manager: string, type: 'merge' | 'strategic'): Write {
    const random = this.#random;
    const patch = combine([
      this.#config(false) as JsonObject,
      ...(random.chance(30) ? [{ metadata: { labels: random.pick([null, { a: null }]) } } as JsonObject] : []),
      ...(random.chance(20) ? [{ metadata: { finalizers: null } } as JsonObject] : []),
      ...(type === 'strategic' && random.chance(30)
        ? [
            {
              metadata: {
                '$deleteFromPrimitiveList/finalizers': ['example.com/a'],
                '$setElementOrder/finalizers': ['example.com/c'],
              },
            } as JsonObject,
          ]
        : []),
    ]);
    const object = live as JsonObject;
    return {
      what: `${type} patch as ${manager}: ${JSON.stringify(patch)}`,
      manager,
      send: () =>
        this.#request(
          'PATCH',
          `/${this.#name}`,
          { fieldManager: manager },
          patch,
          type === 'merge' ? 'application/merge-patch+json' : 'application/strategic-merge-patch+json',
        ),
      make: () =>
        (type === 'merge'
          ? applyMergePatch(object, patch)
          : applyStrategicMergePatch(object, patch, this.#kind.definition.schema())) as KubernetesObject,
    };
  }

  #jsonPatch(live: KubernetesObject, manager: string): Write {
    const operations = this.#kind.operations(this.#random);
    return {
      what: `JSON patch as ${manager}: ${JSON.stringify(operations)}`,
      manager,
      send: () =>
        this.#request('PATCH', `/${this.#name}`, { fieldManager: manager }, operations, 'application/json-patch+json'),
      make: () => applyJsonPatch(live as JsonObject, operations) as KubernetesObject,
    };
  }

  #reset(live: KubernetesObject, manager: string): Write {
    const patch: JsonObject = { metadata: { managedFields: this.#random.pick<JsonValue>([[], [{}]]) } };
    return {
      what: `reset as ${manager}: ${JSON.stringify(patch)}`,
      manager,
      send: () => this.#request('PATCH', `/${this.#name}`, { fieldManager: manager }, patch),
      make: () => applyMergePatch(live as JsonObject, patch) as KubernetesObject,
    };
  }

  #patchStatus(live: KubernetesObject, manager: string): Write {
    const patch = this.#statusConfig() as JsonObject;
    return {
      what: `patch of the status as ${manager}: ${JSON.stringify(patch)}`,
      subresource: 'status',
      manager,
      send: () => this.#request('PATCH', `/${this.#name}/status`, { fieldManager: manager }, patch),
      make: () => applyMergePatch(live as JsonObject, patch) as KubernetesObject,
    };
  }

  async #check(write: Write, answer: Answer): Promise<void> {
    this.outcomes.push(`${write.what.split(' as ', 1)[0]} ${answer.status}`);
    if (answer.status >= 400) {
      this.log.push(`  -> ${answer.status} ${answer.body.message}`);
      this.#checkRefusal(write, answer);
      if (answer.status === 409 && write.apply !== undefined) {
        this.#note(write, 0, { message: answer.body.message });
      }
      return;
    }
    const server = answer.body;
    const now = Math.max(
      ...(server.metadata.managedFields ?? []).map(({ time = '1970-01-01T00:00:00Z' }) => Date.parse(time)),
      0,
    );
    const { made, stored } = this.#computed(write, server, now);
    assert.deepEqual(
      entriesOf(stored.metadata.managedFields),
      entriesOf(server.metadata.managedFields),
      'managedFields',
    );
    assert.equal(
      stored === this.#live,
      server.metadata.resourceVersion === this.#live?.metadata.resourceVersion,
      'whether the write changes nothing',
    );
    const isChanged = stored !== this.#live;
    this.#note(write, now, {
      ...(isChanged ? { object: changeOf(this.#live ?? {}, server) } : {}),
      ...(write.apply === undefined ? { updated: changeOf(server, made) } : { applied: changeOf(server, made) }),
    });
    this.#live = server;
    await this.#checkObject(write, write.apply === undefined ? write.make() : made, server);
  }

  #note({ manager, subresource, apply }: Write, now: number, outcome: object): void {
    this.record.push({ manager, subresource, ...(apply === undefined ? {} : { apply }), now, ...outcome });
  }

  /** The object after a write as computed here: before defaults (`made`), and with defaults and managers (`stored`). */
  #computed(write: Write, server: KubernetesObject, now: number): Record<'made' | 'stored', KubernetesObject> {
    const { definition } = this.#kind;
    const { manager, subresource } = write;
    const live = this.#live;
    const common = { definition, subresource, manager, now, live };
    const stored = (object: KubernetesObject): KubernetesObject => {
      if (live === undefined) {
        return object;
      }
      const { managedFields } = object.metadata;
      const { managedFields: _managedFields, ...others } = {
        ...server.metadata,
        resourceVersion: live.metadata.resourceVersion,
      };
      const metadata = { ...others, ...(managedFields === undefined ? {} : { managedFields }) };
      return keepManagerTimes(live, { ...server, metadata } as KubernetesObject);
    };
    if (write.apply !== undefined) {
      const { object, conflicts } = applyServerSide({ ...common, ...write.apply });
      assert.ok(object !== undefined, `no conflicts, got ${conflicts?.message}`);
      return { made: object, stored: object === live ? object : stored(object) };
    }
    const made = write.make();
    const updated = subresource === undefined ? this.#unassigned(server, made) : { ...made, status: server['status'] };
    const { managedFields } = made.metadata;
    const withEntries = { ...updated, metadata: { ...updated.metadata, managedFields } } as KubernetesObject;
    return { made: withEntries, stored: stored(trackUpdate({ ...common, updated: withEntries })) };
  }

  /** The object of the server without the fields that it set after defaults. */
  #unassigned(server: KubernetesObject, made: KubernetesObject): KubernetesObject {
    let result = server as JsonObject;
    for (const path of this.#live === undefined ? this.#kind.assigned : []) {
      const [first = '', second = ''] = path;
      const mine = (made[first] ?? {}) as JsonObject;
      if (!(second in mine)) {
        result = applyMergePatch(result, { [first]: { [second]: null } });
      }
    }
    return result as KubernetesObject;
  }

  /** Sends the computed object as an update. With defaults, it must be equal to the object of the server. */
  async #checkObject(write: Write, made: KubernetesObject, server: KubernetesObject): Promise<void> {
    const { resourceVersion, uid } = server.metadata;
    const body = { ...made, metadata: { ...made.metadata, resourceVersion, uid } };
    const suffix = write.subresource === undefined ? '' : `/${write.subresource}`;
    const { status, body: defaulted } = await this.#request('PUT', `/${this.#name}${suffix}`, { dryRun: 'All' }, body);
    assert.ok(status < 400, `the object that was made is refused: ${JSON.stringify(defaulted.message)}`);
    assert.deepEqual(contentOf(defaulted), contentOf(server), 'the object');
  }

  #checkRefusal(write: Write, { status, body }: Answer): void {
    const common = {
      definition: this.#kind.definition,
      subresource: write.subresource,
      manager: write.manager,
      now: 0,
      live: this.#live,
    };
    if (status === 409 && body.message?.startsWith('Apply failed') === true) {
      assert.ok(write.apply !== undefined);
      const { conflicts } = applyServerSide({ ...common, ...write.apply });
      assert.equal(conflicts?.message, body.message);
      assert.deepEqual(sortedCauses(conflicts?.causes ?? []), sortedCauses((body.details?.causes ?? []) as never));
    } else if (status === 500 || (status === 422 && body.message?.includes('invalid') === false)) {
      assert.throws(
        () => (write.apply === undefined ? write.make() : applyServerSide({ ...common, ...write.apply })),
        (error: Error) => {
          assert.ok(error instanceof MergeError || error instanceof PatchError);
          // API servers do not report why a patch does not apply.
          assert.ok(status === 422 || error.message === body.message, `${error.message}\n${body.message}`);
          assert.equal(error.status, status);
          return true;
        },
      );
    }
  }
}

function sortedCauses(causes: ApplyConflicts['causes']): unknown {
  return causes.map(({ reason, message, field }) => `${reason} ${message} ${field}`).sort();
}

/** The managedFields as text, so that the order of fields is compared. */
function entriesOf(entries: KubernetesObject['metadata']['managedFields']): unknown {
  return (entries ?? []).map(({ manager, operation, apiVersion, subresource, time, fieldsV1 }) => [
    manager,
    operation,
    apiVersion,
    subresource,
    time,
    JSON.stringify(fieldsV1),
  ]);
}

function contentOf(object: KubernetesObject): unknown {
  const { resourceVersion: _version, generation: _generation, managedFields: _fields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** The merge patch from one object to another. Null fields of the new object are not changed. */
function changeOf(before: object, after: object): JsonObject {
  const change: JsonObject = {};
  for (const [key, value] of Object.entries(after) as [string, JsonValue][]) {
    const known = (before as JsonObject)[key];
    if (isJsonObject(known) && isJsonObject(value)) {
      const inner = changeOf(known, value);
      if (Object.keys(inner).length > 0) {
        change[key] = inner;
      }
    } else if (!isDeepStrictEqual(known, value) && value !== undefined) {
      change[key] = value;
    }
  }
  for (const key of Object.keys(before)) {
    if ((after as JsonObject)[key] === undefined) {
      change[key] = null;
    }
  }
  return change;
}

describe('merging as an API server does', { skip: skipWithoutCluster() }, () => {
  let cluster: Cluster;
  let kinds: readonly TestedKind[];

  before(async () => {
    cluster = await startCluster();
    await cluster.createNamespace(NAMESPACE);
    await cluster.expect('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', WIDGET_CRD);
    await eventually(() => cluster.expect('GET', `/apis/example.com/v1/namespaces/${NAMESPACE}/widgets`));
    kinds = testedKinds();
  });
  after(() => cluster.stop());

  it('gives the same objects, owners and conflicts', { timeout: (Number(options.seconds) + 60) * 1000 }, async () => {
    const end = performance.now() + Number(options.seconds) * 1000;
    const first = Number(options.seed);
    let writes = 0;
    const outcomes = new Map<string, number>();
    const recorded: { apiVersion: string; kind: string; writes: object[] }[] = [];
    for (let seed = first; performance.now() < end; seed++) {
      const kind = kinds[seed % kinds.length]!;
      const session = new Session(cluster, kind, seed);
      try {
        await session.run();
      } catch (error) {
        throw new Error(`${kind.definition.kind}, seed ${seed}:\n${session.log.join('\n')}`, { cause: error });
      }
      writes += session.writes;
      for (const outcome of session.outcomes) {
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
      if (recorded.length < kinds.length) {
        const { definition } = kind;
        recorded.push({
          apiVersion: apiVersionOf(definition),
          kind: definition.kind,
          writes: session.record.slice(0, RECORDED_WRITES),
        });
      }
    }
    if (typeof options.record === 'string') {
      const lines = recorded.map(({ writes: all, ...kind }) => {
        const texts = all.map((one) => `    ${JSON.stringify(one)}`).join(',\n');
        return `  {${JSON.stringify(kind).slice(1, -1)}, "writes": [\n${texts}\n  ]}`;
      });
      writeFileSync(options.record, `[\n${lines.join(',\n')}\n]\n`);
    }
    assert.ok(writes > 100, `expected some hundred writes, made ${writes}`);
    console.log(`${writes} writes: ${[...outcomes].map(([outcome, count]) => `${count} ${outcome}`).join(', ')}`);
  });
});
