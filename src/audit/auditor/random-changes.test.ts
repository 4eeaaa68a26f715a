// An auditor that follows random changes has the findings of an audit from nothing.
import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import { EvaluationHost } from '../../evaluation/index.ts';
import {
  ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  customResourceDefinition,
  type JsonObject,
  knownKind,
  type KubernetesObject,
  OWN_KINDS,
  type ResourceType,
} from '../../resources/index.ts';
import { auditCluster } from '../audit-cluster.ts';
import { policiesOfCluster } from '../policies-of-cluster.ts';
import { RandomChanges, toggleObject } from '../testing/random-changes.ts';
import { eventually, RunningAuditor, textOf } from '../testing/running-auditor.ts';
import { celSpec, INSTALLATION, NOT_LATEST, policyObject, ruleFor, samplePod } from '../testing/sample-policies.ts';

const PODS = knownKind('v1', 'Pod');
const NAMESPACES = knownKind('v1', 'Namespace');
const CONFIG_MAPS = knownKind('v1', 'ConfigMap');
const CRDS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');

const log = pino({ level: 'silent' });
/** Times that findings are compared, and changes before each. */
const ROUNDS = 12;
const CHANGES = 6;
const NAMES = ['a', 'b', 'c'];
const PLACES = ['shop', 'play'];

const LIMITS = (namespace?: string): object => ({
  from: {
    resource: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: 'limits',
      ...(namespace === undefined ? {} : { namespace }),
    },
  },
  notFound: 'UseDefaults',
  overridable: ['validations'],
  settingsExpression: "{'validations': [{'expression': params.data.expression, 'message': 'limits'}]}",
});
const EXPRESSIONS = ["object.metadata.name == 'a'", "'app' in object.metadata.?labels.orValue({})", NOT_LATEST];
/** Specs of policies of the cluster; each reads something else. */
const SPECS: readonly ((expression: string) => object)[] = [
  (expression) => celSpec(expression),
  (expression) => celSpec(expression, { namespaceSelector: { matchLabels: { tier: 'prod' } } }),
  (expression) => celSpec(expression, { objectSelector: { matchLabels: { app: 'web' } } }),
  (expression) => celSpec(expression, { matchConditions: [{ name: 'c', expression: "object.metadata.name != 'c'" }] }),
  (expression) => celSpec(expression, { parameters: LIMITS() }),
  (expression) => celSpec(expression, { parameters: LIMITS('shop') }),
  () =>
    celSpec("object.metadata.name != 'play'", {
      rules: [ruleFor('namespaces')],
      namespaceSelector: { matchLabels: { tier: 'prod' } },
    }),
  (expression) => celSpec(expression, { backgroundAudit: false }),
  () => celSpec("request.userInfo.username != ''"),
];

describe('an auditor that follows random changes', () => {
  // A failure is repeated by writing its seed here.
  const seed = 1 + Math.trunc(Math.random() * 2 ** 30);
  const random = new RandomChanges(seed);
  let embedded: EmbeddedCluster;
  let admin: Cluster;
  let host: EvaluationHost;

  before(async () => {
    embedded = await EmbeddedCluster.open();
    ({ admin } = embedded);
    for (const kind of OWN_KINDS) {
      await admin.create(CRDS, customResourceDefinition(kind));
    }
    for (const name of PLACES) {
      await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    host = new EvaluationHost({
      cacheDir: join(tmpdir(), 'portcullis-auditor'),
      workers: 2,
      lookups: { cluster: admin, log },
      log: () => undefined,
    });
    await host.start();
  });
  after(async () => {
    await host[Symbol.asyncDispose]();
    await embedded[Symbol.asyncDispose]();
  });

  const one = <T>(list: readonly T[]): T => random.one(list);
  const toggle = (type: ResourceType, object: KubernetesObject): Promise<void> => toggleObject(admin, type, object);

  async function merge(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    body: JsonObject,
  ): Promise<void> {
    await unlessGone(
      admin.patch(type, namespace === undefined ? { name } : { namespace, name }, { type: 'merge', body }),
    );
  }

  async function setImage(namespace: string, name: string, image: string): Promise<void> {
    const body = [{ op: 'replace', path: '/spec/containers/0/image', value: image }];
    await unlessGone(admin.patch(PODS, { namespace, name }, { type: 'json', body }));
  }

  const CHANGE: readonly (() => Promise<void>)[] = [
    () => toggle(PODS, samplePod(one(PLACES), one(NAMES), one(['web:1', 'web:latest']), one([{}, { app: 'web' }]))),
    () => toggle(PODS, samplePod(one(PLACES), one(NAMES), one(['web:1', 'web:latest']))),
    () => merge(PODS, one(PLACES), one(NAMES), { metadata: { labels: { app: one(['web', null]) } } }),
    () => setImage(one(PLACES), one(NAMES), one(['web:1', 'web:latest'])),
    () => merge(NAMESPACES, undefined, one(PLACES), { metadata: { labels: { tier: one(['prod', 'test', null]) } } }),
    () => {
      const metadata = { namespace: one(PLACES), name: 'limits' };
      return toggle(CONFIG_MAPS, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata,
        data: { expression: one(EXPRESSIONS) },
      });
    },
    () => merge(CONFIG_MAPS, one(PLACES), 'limits', { data: { expression: one(EXPRESSIONS) } }),
    () => toggle(CLUSTER_ADMISSION_POLICIES, policyObject(one(NAMES), one(SPECS)(one(EXPRESSIONS)))),
    () => toggle(CLUSTER_ADMISSION_POLICIES, policyObject(one(NAMES), one(SPECS)(one(EXPRESSIONS)))),
    () =>
      merge(CLUSTER_ADMISSION_POLICIES, undefined, one(NAMES), { spec: one(SPECS)(one(EXPRESSIONS)) as JsonObject }),
    () => toggle(ADMISSION_POLICIES, policyObject(one(NAMES), celSpec(one(EXPRESSIONS)), one(PLACES))),
    () => {
      const policies = {
        only: { module: 'builtin:cel', settings: { validations: [{ expression: one(EXPRESSIONS) }] } },
      };
      const spec = { rules: [ruleFor('pods')], policies, expression: 'only()', message: 'group', mode: 'monitor' };
      const group = { ...policyObject(one(NAMES), spec), kind: 'ClusterAdmissionPolicyGroup' };
      return toggle(CLUSTER_ADMISSION_POLICY_GROUPS, group);
    },
  ];

  async function fromNothing(): Promise<readonly string[]> {
    const { policies } = await policiesOfCluster(admin, INSTALLATION);
    const found: string[] = [];
    for await (const { results } of auditCluster({ cluster: admin, host, policies })) {
      found.push(...results.map((result) => `${textOf(result)} ${result.message ?? ''}`));
    }
    return found.toSorted();
  }

  it(`has the findings of an audit from nothing after each pause (seed ${seed})`, async () => {
    await using running = new RunningAuditor(admin);
    const { auditor } = running;
    const known = (): readonly string[] =>
      [...auditor.namespaces()]
        .flatMap((namespace) => auditor.of(namespace).map((one) => `${textOf(one)} ${one.message ?? ''}`))
        .toSorted();
    let mostFindings = 0;
    for (let round = 1; round <= ROUNDS; round += 1) {
      for (let change = 1; change <= CHANGES; change += 1) {
        await one(CHANGE)();
      }
      // The other host hears of changes with a delay of its own.
      await eventually(async () => {
        const expected = await fromNothing();
        mostFindings = Math.max(mostFindings, expected.length);
        assert.deepEqual(known(), expected);
        const findings = PLACES.flatMap((namespace) => auditor.of(namespace));
        assert.deepEqual(
          findings.filter(({ policyId, policyGeneration }) => policyGeneration !== auditor.generationOf(policyId)),
          [],
        );
        return 'equal';
      }, 'equal');
    }
    assert.ok(mostFindings > 0, 'there was something to find');
  });
});
