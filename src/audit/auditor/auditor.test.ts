import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { EvaluationHost } from '../../evaluation/index.ts';
import {
  ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  knownKind,
  type KubernetesObject,
  OWN_KINDS,
} from '../../resources/index.ts';
import { controlledCluster } from '../../runtime/index.ts';
import type { Coverage } from '../coverage.ts';
import type { AuditFinding } from '../finding.ts';
import { celSpec } from '../testing/sample-policies.ts';
import { Auditor } from './auditor.ts';
import { LookedUpObjects } from './looked-up-objects.ts';

const PODS = knownKind('v1', 'Pod');
const SERVICES = knownKind('v1', 'Service');
const NAMESPACES = knownKind('v1', 'Namespace');
const CONFIG_MAPS = knownKind('v1', 'ConfigMap');
const CRDS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const POLICIES = CLUSTER_ADMISSION_POLICIES;
const OWN_POLICIES = ADMISSION_POLICIES;

const INSTALLATION = { productNamespace: 'portcullis', exemptNamespaces: ['kube-system'] };
const NOT_LATEST = "object.spec.containers.all(c, !c.image.endsWith(':latest'))";
const log = pino({ level: 'silent' });

function pod(namespace: string, name: string, image: string, more: object = {}): KubernetesObject {
  const spec = { containers: [{ name: 'main', image }] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name, ...more }, spec };
}

function policy(name: string, spec: object, namespace?: string): KubernetesObject {
  const kind = namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy';
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  return { apiVersion: 'policies.kubewarden.io/v1', kind, metadata, spec };
}

/** An auditor that runs, and what its host was asked. */
class Running implements AsyncDisposable {
  readonly auditor: Auditor;
  /** `policy namespace/name` of each evaluation. */
  readonly evaluated: string[] = [];
  readonly #host: EvaluationHost;
  readonly #stop = new AbortController();
  readonly #ended: Promise<unknown>;

  constructor(cluster: Cluster) {
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
      evaluate: (object, options) => {
        const { namespace = '', name = '' } = object.object['metadata'] as { namespace?: string; name?: string };
        this.evaluated.push(...[...(options?.policies ?? [])].map((id) => `${id} ${namespace}/${name}`));
        return this.#host.evaluate(object, options);
      },
    };
    this.auditor = new Auditor({ controlled, host, lookups, installation: INSTALLATION, atOnce: 2 });
    this.#ended = this.#host
      .start()
      .then(() => Promise.all([controlled.caches.start(this.#stop.signal), this.auditor.start(this.#stop.signal)]));
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

function textOf({
  policy: name,
  result,
  object: { kind, namespace = '', name: object },
}: Omit<AuditFinding, 'policyId'>): string {
  return `${name} ${result} ${kind} ${namespace}/${object}`;
}

/** Waits until a condition holds. */
async function eventually(what: () => unknown, expected: unknown, ms = 60_000): Promise<void> {
  const deadline = performance.now() + ms;
  for (;;) {
    try {
      assert.deepEqual(what(), expected);
      return;
    } catch (error) {
      if (performance.now() > deadline) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

describe('an auditor', () => {
  let embedded: EmbeddedCluster;
  let admin: Cluster;

  before(async () => {
    embedded = await EmbeddedCluster.open();
    ({ admin } = embedded);
    for (const kind of OWN_KINDS) {
      await admin.create(CRDS, customResourceDefinition(kind));
    }
    for (const [name, labels] of Object.entries({ shop: { tier: 'prod' }, play: {} })) {
      await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
      await admin.create(PODS, pod(name, 'bad', 'web:latest'));
      await admin.create(PODS, pod(name, 'good', 'web:1'));
    }
  });
  afterEach(async () => {
    await admin.deleteCollection(POLICIES);
    for (const namespace of ['shop', 'play']) {
      await admin.deleteCollection(OWN_POLICIES, { namespace });
      await admin.deleteCollection(CONFIG_MAPS, { namespace });
      await admin.deleteCollection(SERVICES, { namespace });
    }
  });
  after(() => embedded[Symbol.asyncDispose]());

  const isScanned = (running: Running, id: string) => () =>
    running.coverage(id).map(({ kind, state }) => `${kind?.resource} ${state}`);

  it('finds what policies reject, and follows objects', async () => {
    await admin.create(POLICIES, policy('latest', celSpec(NOT_LATEST)));
    await using running = new Running(admin);
    await eventually(() => running.findings, ['cap/latest fail Pod play/bad', 'cap/latest fail Pod shop/bad']);
    await eventually(isScanned(running, 'kw.cap.latest'), ['pods Scanned']);
    await admin.create(PODS, pod('play', 'new', 'web:latest'));
    await eventually(() => running.findings.includes('cap/latest fail Pod play/new'), true);
    await admin.delete(PODS, { namespace: 'play', name: 'new' });
    await eventually(() => running.findings, ['cap/latest fail Pod play/bad', 'cap/latest fail Pod shop/bad']);
  });
});
