import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, KubernetesObject } from '../../resources/index.ts';
import { AUDITOR, CONTROLLER, defaultValues, installObjects, installValues } from '../../installation/index.ts';
import { type InstalledObjects, keptValues, mergedValues, recordText, VALUES_ANNOTATION } from './kept-values.ts';

const VERSION = '1.0.0';
/** Each value that the cluster shows, other than its default. */
const SHOWN = {
  image: 'registry.example/portcullis:9',
  imagePullPolicy: 'Always',
  imagePullSecrets: [{ name: 'pull' }],
  exemptNamespaces: ['kube-system', 'ops'],
  listenAddress: '::',
  apiServers: ['10.0.0.0/28'],
  controller: {
    replicas: 3,
    logLevel: 'debug',
    logFormat: 'text',
    rolloutStrategy: 'AllReplicas',
    progressDeadline: '2m',
    revisionHistoryLimit: 3,
    degradedPolicies: 'reject',
    unservedPolicies: 'reject',
    resources: { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '3' } },
    nodeSelector: { pool: 'system' },
    tolerations: [{ operator: 'Exists' }],
    affinity: { nodeAffinity: {} },
    priorityClassName: 'high',
    extraEnv: [{ name: 'A', value: 'b' }],
    extraVolumes: [{ name: 'v', emptyDir: {} }],
    extraVolumeMounts: [{ name: 'v', mountPath: '/v' }],
  },
  auditor: {
    replicas: 2,
    resources: { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '3' } },
    nodeSelector: { pool: 'audits' },
    tolerations: [{ operator: 'Exists' }],
    affinity: { nodeAffinity: {} },
    priorityClassName: 'low',
  },
  certificates: { mode: 'external', caLifetime: '9d', caOverlap: '9m', lifetime: '8d' },
  governance: { mode: 'hub', clusterName: 'one', namespaces: ['a', 'b'], roles: ['view'] },
  networkPolicyStatus: { annotation: 'write', catalogue: '/v/catalogue.yaml' },
  policyServer: {
    replicas: 5,
    requests: { cpu: '1', memory: '1Gi' },
    limits: { cpu: '9', memory: '9Gi' },
    imagePullSecret: 'pull',
    env: [{ name: 'B', value: 'c' }],
  },
};

/** A cluster after an installation with these values. */
function installedWith(given: JsonObject, isRecorded: boolean): InstalledObjects {
  const values = installValues(given, VERSION, 'test');
  const objects = installObjects({ namespace: 'portcullis', values });
  const find = (wanted: string, name: string): KubernetesObject =>
    structuredClone(objects.find(({ kind, metadata: { name: own } }) => kind === wanted && own === name)) as never;
  const { metadata, ...deployment } = find('Deployment', CONTROLLER);
  const annotations = isRecorded ? { [VALUES_ANNOTATION]: recordText(given, values) } : {};
  return {
    deployment: { ...deployment, metadata: { ...metadata, annotations } },
    auditor: find('Deployment', AUDITOR),
    policyServer: find('PolicyServer', 'default'),
    governanceRoles: values.governance.roles,
    parts: {},
  };
}

const kept = (installed: InstalledObjects): JsonObject => keptValues(installed, defaultValues(VERSION), VERSION);

describe('values of the installation before', () => {
  it('are read in the cluster, where nothing recorded them', () => {
    const values = kept(installedWith(SHOWN, false));
    assert.deepEqual(installValues(values, VERSION, 'kept'), installValues(SHOWN, VERSION, 'test'));
    assert.deepEqual(kept(installedWith({}, false)), {});
  });

  it('are those that it was told: defaults are those of the new version', () => {
    const given = { controller: { replicas: 3 }, userRoles: { enabled: false } };
    assert.deepEqual(kept(installedWith(given, true)), given);
    const newer = keptValues(installedWith({}, true), defaultValues('2.0.0'), '2.0.0');
    assert.equal(installValues(newer, '2.0.0', 'kept').image, 'portcullis:2.0.0');
  });

  it('are what the cluster has, where somebody changed it since', () => {
    const installed = installedWith({ controller: { replicas: 3, logLevel: 'warn' } }, true);
    const deployment = structuredClone(installed.deployment) as unknown as {
      spec: { replicas: number; template: { spec: { containers: { args: string[]; resources: object }[] } } };
    };
    deployment.spec.replicas = 4;
    const [container] = deployment.spec.template.spec.containers;
    assert.ok(container !== undefined);
    container.args = container.args.map((one) => one.replace('--log-fmt=json', '--log-fmt=text'));
    container.resources = { limits: { memory: '2Gi' } };
    const values = kept({
      ...installed,
      deployment: deployment as unknown as KubernetesObject,
      governanceRoles: ['view'],
    });
    const { controller, governance } = installValues(values, VERSION, 'kept');
    assert.deepEqual(
      [controller.replicas, controller.logLevel, controller.logFormat, controller.resources, governance.roles],
      [4, 'warn', 'text', { limits: { memory: '2Gi' } }, ['view']],
    );
  });

  it('are refused where somebody changed the record', () => {
    const { deployment, ...others } = installedWith({}, true);
    for (const text of ['nonsense', '{}', '[]', '{"given":[],"all":{}}']) {
      const metadata = { ...deployment.metadata, annotations: { [VALUES_ANNOTATION]: text } };
      assert.throws(
        () => kept({ ...others, deployment: { ...deployment, metadata } }),
        /is not what an installation wrote/,
      );
    }
  });

  it('stay beside those that are told', () => {
    const merged = mergedValues({ image: 'a', controller: { replicas: 3 } }, { controller: { logLevel: 'warn' } });
    assert.deepEqual(merged, { image: 'a', controller: { replicas: 3, logLevel: 'warn' } });
    assert.equal(installValues(mergedValues(merged, { image: null }), VERSION, 'x').image, `portcullis:${VERSION}`);
  });
});
