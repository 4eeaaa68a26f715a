// Compares warnings about types with those of an API server for its own policies (`status.typeChecking`, KEP-3488).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { PolicyTypeChecks } from '../../src/lifecycle/index.ts';
import { createLog } from '../../src/log/index.ts';
import type { AdmissionPolicySpec, JsonObject } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { ADMIN, type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';

const POLICIES = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

const rule = (group: string, ...resources: string[]): JsonObject => ({
  apiGroups: [group],
  apiVersions: ['v1'],
  resources,
  operations: ['CREATE', 'UPDATE'],
});
const PODS = [rule('', 'pods')];
const DEPLOYMENTS = [rule('apps', 'deployments')];
const WIDGETS = [rule('example.com', 'widgets')];

interface Case {
  readonly rules: readonly JsonObject[];
  readonly expression: string;
  readonly variables?: Readonly<Record<string, string>>;
  /** Why an API server has other warnings: true of ours, which follow values as evaluation sees them. */
  readonly difference?: string;
}

/** Each has the same warnings, but for those with a difference. */
const CASES: readonly Case[] = [
  { rules: DEPLOYMENTS, expression: 'object.spec.replicas <= 5' },
  { rules: DEPLOYMENTS, expression: 'object.replicas > 1' },
  { rules: DEPLOYMENTS, expression: 'object.spec.replicas > "1"' },
  { rules: DEPLOYMENTS, expression: 'oldObject.spec.nothing == object.spec.replicas' },
  { rules: DEPLOYMENTS, expression: 'has(object.spec.template.spec.hostnetwork)' },
  { rules: DEPLOYMENTS, expression: 'object.spec.template.spec.containers.all(c, c.img != "")' },
  { rules: DEPLOYMENTS, expression: 'object.spec.?strateg.orValue(null) == null' },
  { rules: DEPLOYMENTS, expression: 'object.spec.selector.matchLabels.all(k, k.startsWith(object.spec.replicas))' },
  { rules: [rule('apps', 'deployments', 'daemonsets')], expression: 'object.spec.replicas > 1' },
  { rules: [rule('apps', 'deployments', 'statefulsets')], expression: 'object.spec.size > 1' },
  { rules: PODS, expression: 'object.spec.volumes.all(v, !has(v.hostpath))' },
  { rules: PODS, expression: 'object.spec.volumes.all(v, !has(v.hostPath))' },
  { rules: PODS, expression: 'object.metadata.labels["a"].contains("b") && object.metadata.name.size() > 2' },
  { rules: PODS, expression: 'object.metadata.nam == "a" || object.kin == "b"' },
  { rules: PODS, expression: 'object.spec.containers.exists(c, c.ports.exists(p, p.hostPort > "1"))' },
  { rules: PODS, expression: 'object.spec.securityContext.runAsUser.startsWith("a")' },
  { rules: PODS, expression: 'object.metadata.name.x == "a"' },
  { rules: PODS, expression: 'object.spec["hostNetwork"] == true' },
  { rules: PODS, expression: 'object["spec"]["hostNetwok"] || object.metadata["labels"]["a"] == "b"' },
  { rules: PODS, expression: 'object.spec[?"hostNetwok"].orValue(false)' },
  { rules: PODS, expression: 'object.?spec[?"hostNetwok"].orValue(false)' },
  { rules: PODS, expression: 'object.spec[object.metadata.name] == null' },
  { rules: PODS, expression: 'object[0] == null' },
  { rules: PODS, expression: 'object.spec.containers["a"] == null' },
  { rules: WIDGETS, expression: 'object.spec["size"] > 1' },
  { rules: WIDGETS, expression: 'object.spec.parts[0]["name"] == "a"' },
  { rules: WIDGETS, expression: 'object.spec.size > 1 && object.metadata.name != ""' },
  { rules: WIDGETS, expression: 'object.spec.siz > 1 || object.spec.parts.all(p, p.nme == "a")' },
  { rules: [rule('', '*')], expression: 'object.spec.nothing == 1' },
  { rules: [rule('', 'pods/exec')], expression: 'object.spec.nothing == 1' },
  { rules: WIDGETS, expression: 'object["status"]["anything"] == 1' },
  {
    rules: PODS,
    expression: '(object.spec.containers + object.spec.initContainers).all(c, c.image != "")',
    difference: 'fields with one schema have one type',
  },
  {
    rules: PODS,
    expression: 'variables.spec.containers.all(c, has(c.imag))',
    variables: { spec: 'object.spec' },
    difference: 'variables keep their types',
  },
  { rules: PODS, expression: 'object.metadata.labels == null', difference: 'a comparison with null is no error' },
  { rules: PODS, expression: '"hostNetwork" in object.spec', difference: 'objects are maps' },
  { rules: WIDGETS, expression: 'object.status.anything == 1', difference: 'unknown fields are preserved' },
  {
    rules: [rule('', 'secrets')],
    expression: 'object.data["a"] == "YQ=="',
    difference: 'base64 is a string',
  },
  {
    rules: [rule('', 'pods'), rule('apps', 'deployments')],
    expression: 'has(object.spec.template) ? has(object.spec.template.spec) : has(object.spec.hostNetwork)',
    difference: 'parts that are not evaluated for a kind',
  },
];

/** A definition with known and preserved fields. */
const DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  size: { type: 'integer' },
                  parts: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } },
                },
              },
              status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        },
      },
    ],
  },
};

interface TypeChecking {
  readonly expressionWarnings?: readonly { readonly fieldRef: string; readonly warning: string }[];
}

/** Message and position of each warning, once for all kinds. */
function ofServer({ expressionWarnings = [] }: TypeChecking): readonly string[] {
  const found = expressionWarnings.flatMap(({ warning }) =>
    Array.from(
      warning.matchAll(/ERROR: <input>:(\d+:\d+): (.*)$/gm),
      ([, at = '', message = '']) => `${at} ${withoutTypeNames(message)}`,
    ),
  );
  return [...new Set(found)].toSorted();
}

/** API servers name the types of objects by random numbers and paths, such as `Pod123.spec`. */
function withoutTypeNames(message: string): string {
  return message.replaceAll(/\b[A-Z]\w*(?:\.@?\w+|\[])*/g, 'OBJECT');
}

describe('warnings about types, and those of a kube-apiserver', { skip: skipWithoutCluster() }, () => {
  let cluster: Cluster;
  let connection: KubernetesCluster;
  let checks: PolicyTypeChecks;
  const ended = new AbortController();

  before(async () => {
    cluster = await startCluster({ controllers: true });
    connection = new KubernetesCluster({
      server: cluster.url,
      ca: readFileSync(cluster.caFile, 'utf8'),
      credentials: tokenCredentials(cluster.token(ADMIN)),
    });
    checks = new PolicyTypeChecks({ cluster: connection, log: createLog({ level: 'silent' }) });
    void checks.start(ended.signal);
    await cluster.expect('POST', DEFINITIONS, DEFINITION);
    await eventually(async () => assert.notEqual(await connection.openApi.document('example.com/v1'), undefined));
  });
  after(async () => {
    ended.abort();
    (connection as KubernetesCluster | undefined)?.close();
    await (cluster as Cluster | undefined)?.stop();
  });

  async function serverWarnings({ rules, expression, variables = {} }: Case, name: string): Promise<readonly string[]> {
    await cluster.expect('POST', POLICIES, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name },
      spec: {
        matchConstraints: { resourceRules: rules },
        variables: Object.entries(variables).map(([key, text]) => ({ name: key, expression: text })),
        validations: [{ expression }],
      },
    });
    return await eventually(async () => {
      const { status } = (await cluster.expect('GET', `${POLICIES}/${name}`)) as {
        status?: { observedGeneration?: number; typeChecking?: TypeChecking };
      };
      assert.equal(status?.observedGeneration, 1);
      return ofServer(status.typeChecking ?? {});
    });
  }

  async function ownWarnings({ rules, expression, variables = {} }: Case): Promise<readonly string[]> {
    const settings = {
      variables: Object.entries(variables).map(([name, text]) => ({ name, expression: text })),
      validations: [{ expression }],
    };
    const spec = { module: 'builtin:cel', mutating: false, rules, settings } as unknown as AdmissionPolicySpec;
    const { warnings, skipped } = await checks.check(spec, '');
    assert.equal(skipped, undefined);
    return warnings
      .map(({ message }) => /^(.*) at (\d+:\d+), in /s.exec(message) ?? [])
      .map(([, message = '', at = '']) => `${at} ${withoutTypeNames(message)}`)
      .toSorted();
  }

  it('are the same, but for known differences', async () => {
    const results = await Promise.all(
      CASES.map(async (one, index) => ({
        one,
        server: await serverWarnings(one, `case-${index}`),
        own: await ownWarnings(one),
      })),
    );
    const unexpected = results.filter(
      ({ one, server, own }) => isDeepStrictEqual(own, server) !== (one.difference === undefined),
    );
    assert.deepEqual(unexpected, []);
    assert.ok(results.filter(({ server }) => server.length > 0).length > 15);
  });
});
