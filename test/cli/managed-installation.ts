// An embedded cluster with the objects of an installation but its pods: what a controller that manages policy servers, and a pod of
// a PolicyServer, find. Both run as processes.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EmbeddedCluster, Gateway, writeKubeconfig } from '../../src/apiserver/index.ts';
import { CONTROLLER_USER } from '../../src/cli/start/access.ts';
import { applyObject } from '../../src/cli/start/apply-object.ts';
import { unlessGone } from '../../src/cluster/index.ts';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import { installObjects } from '../../src/installation/install-objects.ts';
import { installValues } from '../../src/installation/read-values.ts';
import { kubernetesKind, type KubernetesObject, type ResourceType } from '../../src/resources/index.ts';
import { LoggingProcess } from './logging-process.ts';

export const NAMESPACE = 'portcullis';
/** The service account of the policy server. */
const ACCOUNT = 'policies';
export const ACCOUNT_USER = `system:serviceaccount:${NAMESPACE}:${ACCOUNT}`;
/** An address of this machine that no other test listens on, so that the ports of a Deployment are free there. */
export const OWN_ADDRESS = `127.${1 + ((process.pid >> 14) % 255)}.${(process.pid >> 7) % 128}.${1 + (process.pid % 128)}`;
const IMAGE = 'portcullis:0.1.0';
const KINDS: ReadonlySet<string> = new Set([
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'Namespace',
  'Role',
  'RoleBinding',
  'ServiceAccount',
]);

/** What a pod of a policy server is made of. */
interface PodSpec {
  readonly containers: readonly [
    {
      readonly args: readonly string[];
      readonly env: readonly { name: string; value?: string; valueFrom?: { fieldRef: { fieldPath: string } } }[];
      readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
    },
  ];
  readonly volumes: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[];
}

const flagged = (flags: object): string[] =>
  Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);

/** A kind of Kubernetes. */
export function typeOf(apiVersion: string, kind: string): ResourceType {
  return kubernetesKind(apiVersion, kind) ?? assert.fail(`no kind ${kind}`);
}

/** What is found at last. */
export async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined) {
      return found;
    }
    await sleep(20);
  }
}

export class ManagedInstallation implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'portcullis-managed-'));
  readonly cluster: EmbeddedCluster;
  readonly #certificates: 'external' | 'own';
  #gateway: Gateway | undefined;
  #url = new URL('https://nowhere');
  #ca = '';

  private constructor(cluster: EmbeddedCluster, certificates: 'external' | 'own') {
    this.cluster = cluster;
    this.#certificates = certificates;
  }

  /** @param certificates who writes the Secrets with certificates */
  static async open(certificates: 'external' | 'own'): Promise<ManagedInstallation> {
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${NAMESPACE}`, 'system:authenticated'];
    const cluster = await EmbeddedCluster.open({
      tokens: [
        { token: 'controller', user: CONTROLLER_USER },
        { token: 'server', user: { username: ACCOUNT_USER, groups } },
      ],
    });
    const values = installValues({ certificates: { mode: certificates } }, '0.1.0', 'values');
    for (const object of installObjects({ namespace: NAMESPACE, values }).filter(({ kind }) => KINDS.has(kind))) {
      await applyObject(cluster, object);
    }
    const installation = new ManagedInstallation(cluster, certificates);
    await installation.#listen();
    return installation;
  }

  async #listen(): Promise<void> {
    const { caFile, certFile, keyFile } = await ensureLocalCertificates(join(this.folder, 'pki'));
    const tls = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
    this.#ca = readFileSync(caFile, 'utf8');
    this.#gateway = new Gateway({ cluster: this.cluster, authenticator: this.cluster.authenticator, tls });
    const { url } = await this.#gateway.start({ port: 0 });
    this.#url = new URL(url);
    await writeKubeconfig(join(this.folder, 'controller'), { server: url, ca: this.#ca, token: 'controller' });
  }

  /**
   * Starts `portcullis controller --manage-policy-servers`.
   * @param nodeFlags of Node itself
   */
  controller(flags: object, nodeFlags: readonly string[] = []): LoggingProcess {
    const all = {
      kubeconfig: join(this.folder, 'controller'),
      'policy-server-image': IMAGE,
      certificates: this.#certificates,
      ...flags,
    };
    return new LoggingProcess(['controller', '--manage-policy-servers', ...flagged(all)], {}, nodeFlags);
  }

  find(apiVersion: string, kind: string, name: string): Promise<KubernetesObject | undefined> {
    const type = typeOf(apiVersion, kind);
    return unlessGone(this.cluster.admin.get(type, type.namespaced ? { namespace: NAMESPACE, name } : { name }));
  }

  /** Creates a PolicyServer. Before a controller: its webhook calls a Service, which this cluster does not have. */
  async addPolicyServer(): Promise<void> {
    await applyObject(this.cluster, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name: 'default' },
      spec: { image: IMAGE, replicas: 1, serviceAccountName: ACCOUNT },
    });
  }

  /** The Deployment of the PolicyServer, as soon as a controller has made it. */
  async deployment(): Promise<KubernetesObject> {
    return until(() => this.find('apps/v1', 'Deployment', 'policy-server-default'));
  }

  /** Starts the process of a Deployment's pod as a kubelet does: its arguments, its variables and what is mounted. */
  async pod(deployment: KubernetesObject): Promise<LoggingProcess> {
    const { template } = deployment['spec'] as { readonly template: { readonly spec: PodSpec } };
    const { containers, volumes } = template.spec;
    const [{ args, env, volumeMounts }] = containers;
    const { metadata } = await this.cluster.admin.create(typeOf('v1', 'Pod'), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'one', namespace: NAMESPACE },
      spec: { containers: [{ name: 'policy-server', image: IMAGE }] },
    });
    const root = join(this.folder, 'pod');
    const mounted = async (name: string, path: string): Promise<void> => {
      const secret = volumes.find((one) => one.name === name)?.secret?.secretName;
      mkdirSync(join(root, path), { recursive: true });
      this.#write(join(root, path), secret === undefined ? {} : await this.#secret(secret));
    };
    for (const { name, mountPath } of volumeMounts) {
      await mounted(name, mountPath);
    }
    const address = args.find((arg) => arg.startsWith('--addr='))?.slice('--addr='.length);
    const fields = { 'metadata.name': metadata.name, 'metadata.uid': metadata.uid, 'status.podIP': address };
    const variables = env.map(({ name, value, valueFrom }) => [
      name,
      value ?? (fields as Readonly<Record<string, string>>)[valueFrom?.fieldRef.fieldPath ?? ''] ?? '',
    ]);
    const inFolder = (arg: string): string =>
      volumeMounts.some(({ mountPath }) => arg.includes(`=${mountPath}`)) ? arg.replace('=', `=${root}`) : arg;
    return new LoggingProcess(args.map(inFolder), {
      ...(Object.fromEntries(variables) as Record<string, string>),
      ...this.#serviceAccount(join(root, 'account')),
    });
  }

  /** What every pod finds of its cluster. */
  #serviceAccount(folder: string): Readonly<Record<string, string>> {
    mkdirSync(folder);
    this.#write(folder, { token: 'server', 'ca.crt': this.#ca, namespace: NAMESPACE });
    return {
      KUBERNETES_SERVICE_HOST: this.#url.hostname,
      KUBERNETES_SERVICE_PORT: this.#url.port,
      PORTCULLIS_SERVICE_ACCOUNT_DIR: folder,
    };
  }

  /** The files of a Secret, as soon as it exists. */
  async #secret(name: string): Promise<Readonly<Record<string, string>>> {
    const { data } = await until(() => this.find('v1', 'Secret', name));
    const files = Object.entries(data as Readonly<Record<string, string>>);
    return Object.fromEntries(files.map(([file, text]) => [file, Buffer.from(text, 'base64').toString()]));
  }

  #write(folder: string, files: Readonly<Record<string, string>>): void {
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(folder, name), text);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gateway?.stop();
    await this.cluster.close();
    rmSync(this.folder, { recursive: true });
  }
}
