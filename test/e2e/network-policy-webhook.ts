// A policy server that warns of NetworkPolicies, and API servers that call it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cluster } from '../../src/cluster/index.ts';
import { ensureLocalCertificates, type LocalCertificates } from '../../src/control/certificates/index.ts';
import { knownKind, type KubernetesObject } from '../../src/resources/index.ts';
import { eventually } from '../cluster/eventually.ts';
import { webhookConfiguration } from '../cluster/webhook-configuration.ts';
import { serve, type Served } from './served.ts';

const NAMESPACES = knownKind('v1', 'Namespace');
const POLICIES = knownKind('networking.k8s.io/v1', 'NetworkPolicy');
const WEBHOOKS = knownKind('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration');

const MODULE = { module: 'builtin:network-policy-support' };
const OLD = { name: 'cilium', version: '1.15.15' };
/** Old versions that support little: more warnings than an API server returns. */
const MANY =
  'antrea aws-vpc-cni azure-npm azure-npm-windows calico calico-windows canal cilium kube-ovn kube-router ovn-kubernetes weave-net'.split(
    ' ',
  );

/** By the namespace in which each is called. */
const SUPPORT_POLICIES = {
  detected: {
    ...MODULE,
    contextAwareResources: [{ apiVersion: 'portcullis.dev/v1', kind: 'NetworkPolicyProvider' }],
    hostCapabilities: ['kubernetes/list_resources_all'],
  },
  warned: { ...MODULE, settings: { providers: [OLD] } },
  denied: { ...MODULE, settings: { deny: true, providers: [OLD] } },
  many: { ...MODULE, settings: { providers: MANY.map((name) => ({ name, version: '0.0.1' })) } },
};
type PolicyName = keyof typeof SUPPORT_POLICIES;

/** What an API server answers to a write. */
export interface Answered {
  readonly warnings: readonly string[];
  /** Of a denial. */
  readonly message?: string;
}

export class SupportPolicyServer implements AsyncDisposable {
  readonly #folder: string;
  readonly #certificates: LocalCertificates;
  readonly #served: Served;

  private constructor(folder: string, certificates: LocalCertificates, served: Served) {
    this.#folder = folder;
    this.#certificates = certificates;
    this.#served = served;
  }

  /** @param kubeconfig of the cluster whose NetworkPolicyProviders the policy `detected` reads */
  static async start(kubeconfig: string): Promise<SupportPolicyServer> {
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-network-policy-'));
    const policiesFile = join(folder, 'policies.yml');
    await writeFile(policiesFile, JSON.stringify(SUPPORT_POLICIES));
    const certificates = await ensureLocalCertificates(join(folder, 'pki'));
    const served = await serve({ folder, policiesFile, certificates, args: ['--kubeconfig', kubeconfig] });
    return new SupportPolicyServer(folder, certificates, served);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#served.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Has the API server call a policy for the NetworkPolicies of the namespace with its name. */
  async enforce(cluster: Cluster, policy: PolicyName, sample: KubernetesObject): Promise<void> {
    await cluster.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: policy } });
    const configuration = webhookConfiguration({
      name: policy,
      kind: 'validating',
      url: `${this.#served.admission}/validate/${policy}`,
      caBundle: readFileSync(this.#certificates.caFile, 'utf8'),
      rules: [{ apiGroups: ['networking.k8s.io'], operations: ['CREATE', 'UPDATE'], resources: ['networkpolicies'] }],
      failurePolicy: 'Ignore',
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': policy } },
    });
    await cluster.create(WEBHOOKS, configuration);
    await eventually(async () => {
      const { warnings, message } = await answered(cluster, policy, sample);
      assert.ok(warnings.length > 0 || message !== undefined, 'the API server calls the policy');
    });
  }
}

/** The answer to a dry run of a creation. */
export async function answered(cluster: Cluster, namespace: PolicyName, object: KubernetesObject): Promise<Answered> {
  const warnings: string[] = [];
  const body = { ...object, metadata: { ...object.metadata, namespace } };
  try {
    await cluster.create(POLICIES, body, { dryRun: true, onWarning: (text) => warnings.push(text) });
    return { warnings };
  } catch (error) {
    return { warnings, message: error instanceof Error ? error.message : String(error) };
  }
}
