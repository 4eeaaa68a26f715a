import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { ControlEndpoint, type ControlTls } from '../../control/index.ts';
import { ControlCertificates } from '../../control/testing/index.ts';
import { type Digest, digestOf, ModuleCopies } from '../../modules/index.ts';
import {
  POLICY_SERVER_LABEL,
  policyId,
  type PolicyRevision,
  type PolicyServerReplica,
  revisionName,
  type RevisionState,
} from '../../resources/index.ts';
import { ObjectStore } from '../../runtime/index.ts';
import { until } from '../testing/until.ts';
import { ModuleKeeper } from './module-keeper.ts';
import { WantedCopies } from './wanted-copies.ts';

const MIB = 1024 * 1024;
const log = pino({ level: 'silent' });

/** A module of a size, other than all others. */
let modules = 0;
function moduleOf(bytes: number): Buffer {
  modules += 1;
  return Buffer.alloc(bytes, `module ${modules}`);
}

/** A revision of a policy; of a namespace if one is given. */
function revisionOf(
  name: string,
  digest: Digest,
  {
    namespace,
    policyServer = 'default',
    state = 'Serving',
    revision = 1,
  }: {
    readonly namespace?: string;
    readonly policyServer?: string;
    readonly state?: RevisionState;
    readonly revision?: number;
  } = {},
): PolicyRevision {
  const kind = namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy';
  const of = namespace === undefined ? {} : { namespace };
  const id = policyId({ kind, metadata: { name, ...of } });
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyRevision',
    metadata: {
      namespace: 'portcullis',
      name: revisionName(id, revision),
      labels: { [POLICY_SERVER_LABEL]: policyServer },
    },
    spec: {
      policy: { apiVersion: 'policies.kubewarden.io/v1', kind, name, ...of, uid: name },
      policyId: id,
      policyServer,
      revision,
      policyGeneration: 1,
      snapshot: {},
    },
    status: { state, modules: [{ name, module: 'registry://x/y:1', digest }] },
  };
}

describe('the keeper of copies', () => {
  let folder: string;
  let certificates: ControlCertificates;
  let tls: ControlTls;
  let folders = 0;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-keeper-'));
    certificates = await ControlCertificates.create(join(folder, 'pki'));
    tls = await certificates.ofController();
  });
  after(() => rmSync(folder, { recursive: true }));

  /** A keeper, and a policy server with some modules. */
  class Scene implements AsyncDisposable {
    readonly dir: string;
    readonly keeper: ModuleKeeper;
    readonly revisions = new ObjectStore<PolicyRevision>();
    readonly replicas = new ObjectStore<PolicyServerReplica>();
    /** What the replica has. */
    readonly cache = new Map<string, Buffer>();
    readonly #stop = new AbortController();
    readonly #endpoints: ControlEndpoint[] = [];
    #ended: Promise<void> = Promise.resolve();

    constructor(maxBytes: number, dir?: string) {
      folders += 1;
      this.dir = dir ?? join(folder, `copies-${folders}`);
      const { revisions, replicas } = this;
      this.keeper = new ModuleKeeper({
        revisions: Object.assign(revisions, { synced: Promise.resolve() }),
        replicas,
        namespace: 'portcullis',
        wanted: new WantedCopies(),
        copies: new ModuleCopies(this.dir),
        maxBytes,
        tls,
        log,
      });
    }

    /** @param before revisions that are there */
    static async start(maxBytes: number, before: readonly PolicyRevision[] = [], dir?: string): Promise<Scene> {
      const scene = new Scene(maxBytes, dir);
      scene.revisions.replace(before);
      await scene.keeper.open(scene.#stop.signal);
      scene.#ended = scene.keeper.start(scene.#stop.signal);
      return scene;
    }

    /** @param named the PolicyServer in its certificate; none if empty */
    async addReplica(policyServer = 'default', named = policyServer): Promise<void> {
      const endpoint = new ControlEndpoint({
        host: '127.0.0.1',
        port: 0,
        tls: named === '' ? tls : await certificates.ofPolicyServer(named),
        replica: 'r',
        policyServer,
        version: '0',
        reports: { isSynced: false, reports: () => [], report: () => undefined, subscribe: () => () => undefined },
        prevalidate: () => Promise.resolve({ ok: true, modules: [] }),
        readModule: (digest) => Promise.resolve(this.cache.get(digest)),
        log,
      });
      const port = await endpoint.start();
      this.#endpoints.push(endpoint);
      this.replicas.apply({
        type: 'ADDED',
        object: {
          apiVersion: 'portcullis.dev/v1',
          kind: 'PolicyServerReplica',
          metadata: { namespace: 'portcullis', name: `${policyServer}-${port}`, resourceVersion: String(port) },
          spec: { policyServer, controlAddress: `127.0.0.1:${port}` },
        },
      });
    }

    /** Puts a module into the cache of the replica, and returns its digest. */
    has(bytes: Buffer): Digest {
      const digest = digestOf(bytes);
      this.cache.set(digest, bytes);
      return digest;
    }

    add(...objects: readonly PolicyRevision[]): void {
      objects.forEach((object) => this.revisions.apply({ type: 'ADDED', object }));
    }

    change(object: PolicyRevision): void {
      this.revisions.apply({ type: 'MODIFIED', object });
    }

    remove(object: PolicyRevision): void {
      this.revisions.apply({ type: 'DELETED', object });
    }

    copied(policyServer = 'default'): readonly string[] {
      return (this.keeper.report().copies[policyServer] ?? []).toSorted();
    }

    refused(policyServer = 'default'): readonly string[] {
      return this.keeper.report().refused[policyServer] ?? [];
    }

    async [Symbol.asyncDispose](): Promise<void> {
      this.#stop.abort();
      await this.#ended;
      await Promise.all(this.#endpoints.map((endpoint) => endpoint.stop()));
    }
  }

  it('copies what revisions need, from their PolicyServer only, and gives it to that one only', async () => {
    await using scene = await Scene.start(64 * MIB);
    const digest = scene.has(moduleOf(MIB));
    scene.add(revisionOf('p', digest, { policyServer: 'other' }));
    await scene.addReplica('default');
    const unknown = revisionOf('q', digestOf(moduleOf(1)));
    scene.add(unknown, revisionOf('r', digest, { state: 'Failed' }), revisionOf('s', digest, { state: 'Retired' }));
    scene.add(revisionOf('t', digest, { state: 'Validated' }));
    await until(() => scene.copied().length === 1);
    assert.deepEqual([scene.copied('default'), scene.copied('other')], [[digest], []]);
    assert.equal(scene.keeper.find(['other'], digest), undefined);
    assert.equal(scene.keeper.find([], digest), undefined);
    assert.equal(scene.keeper.find(['other', 'default'], digest)?.size, MIB);
    await scene.addReplica('other');
    await until(() => scene.copied('other').length === 1);
  });

  it('copies nothing from processes whose certificates do not name the PolicyServer, which could not get it back', async () => {
    await using scene = await Scene.start(64 * MIB);
    const [digest, other] = [scene.has(moduleOf(10)), scene.has(moduleOf(20))];
    scene.add(revisionOf('p', digest), revisionOf('q', other, { policyServer: 'other' }));
    await scene.addReplica('default', 'other');
    await scene.addReplica('default', '');
    await scene.addReplica('other');
    await until(() => scene.copied('other').length === 1);
    assert.deepEqual(scene.copied('default'), []);
    await scene.addReplica('default');
    await until(() => scene.copied('default').length === 1);
  });

  it('ignores revisions that are not what their names say', async () => {
    await using scene = await Scene.start(64 * MIB);
    const [digest, other] = [scene.has(moduleOf(10)), scene.has(moduleOf(20))];
    await scene.addReplica();
    const forged = revisionOf('p', digest, { namespace: 'tenant' });
    scene.add({ ...forged, spec: { ...forged.spec, policyId: 'kw.cap.p' } });
    scene.add(revisionOf('q', other));
    await until(() => scene.copied().length > 0);
    assert.deepEqual(scene.copied(), [other]);
  });

  it('keeps the half of the cluster free of the modules of namespaces, and says what has no room', async () => {
    await using scene = await Scene.start(8 * MIB);
    const tenants = ['a', 'b', 'c'].flatMap((namespace) =>
      [1, 2].map((n) => revisionOf(`p${n}`, scene.has(moduleOf(1.5 * MIB)), { namespace })),
    );
    scene.add(...tenants);
    await scene.addReplica();
    // One of each fits in a quarter, and two of these in the half.
    await until(() => scene.copied().length === 2 && scene.refused().length === 4);
    const cluster = [1, 2].map(() => scene.has(moduleOf(2 * MIB)));
    scene.add(...cluster.map((digest, n) => revisionOf(`c${n}`, digest)));
    await until(() => cluster.every((digest) => scene.copied().includes(digest)));
    assert.equal(scene.copied().length, 4);
    // A policy that is deleted makes room for another one.
    const [first] = tenants.filter(({ status }) => scene.copied().includes(status?.modules?.[0]?.digest ?? ''));
    assert.ok(first);
    scene.remove(first);
    await until(() => scene.refused().length === 3 && scene.copied().length === 4);
  });

  it('never removes what serves; modules of former revisions make room', async () => {
    await using scene = await Scene.start(4 * MIB);
    const [one, two, three] = [moduleOf(2 * MIB), moduleOf(2 * MIB), moduleOf(2 * MIB)].map((bytes) =>
      scene.has(bytes),
    );
    assert.ok(one !== undefined && two !== undefined && three !== undefined);
    await scene.addReplica();
    scene.add(revisionOf('p', one), revisionOf('q', two));
    await until(() => scene.copied().length === 2);
    scene.add(revisionOf('p', three, { revision: 2 }));
    await until(() => scene.refused().includes(three));
    assert.deepEqual(scene.copied(), [one, two].toSorted());
    // Retired, it is kept until its room is needed, which is now.
    scene.change(revisionOf('p', one, { state: 'Retired' }));
    await until(() => scene.copied().includes(three));
    assert.deepEqual([scene.copied(), scene.refused()], [[two, three].toSorted(), []]);
  });

  it('still has a copy, and says nothing else, when who receives it goes away', async () => {
    await using scene = await Scene.start(64 * MIB);
    const digest = scene.has(moduleOf(3 * MIB));
    await scene.addReplica();
    scene.add(revisionOf('p', digest));
    await until(() => scene.copied().length === 1);
    const { version } = scene.keeper.report();
    const content = scene.keeper.find(['default'], digest)?.content as AsyncGenerator<Uint8Array>;
    await content.next();
    await assert.rejects(content.throw(new Error('Premature close')), /Premature close/);
    assert.deepEqual([scene.copied(), scene.keeper.report().version], [[digest], version]);
  });

  it('has its copies after a restart, without those that no revision needs or that are damaged', async () => {
    const names = ['p', 'q', 'r'];
    const digests: Digest[] = [];
    const revisions: PolicyRevision[] = [];
    let dir: string;
    {
      await using scene = await Scene.start(64 * MIB);
      ({ dir } = scene);
      digests.push(...names.map(() => scene.has(moduleOf(100_000))));
      revisions.push(...digests.map((digest, n) => revisionOf(names[n] ?? '', digest)));
      await scene.addReplica();
      scene.add(...revisions);
      await until(() => scene.copied().length === 3);
    }
    const [kept = '', damaged = ''] = digests;
    await writeFile(join(dir, 'default', `${damaged.slice('sha256:'.length)}.wasm`), 'x');
    await using again = await Scene.start(64 * MIB, revisions.slice(0, 2), dir);
    await until(() => again.copied().length === 1);
    assert.deepEqual(again.copied(), [kept]);
  });
});
