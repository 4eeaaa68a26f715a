// The controller of the objects of PolicyServers, on a cluster.
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../../../apiserver/index.ts';
import { type Cluster, unlessGone } from '../../../cluster/index.ts';
import {
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  type JsonObject,
  knownKind,
  type KubernetesObject,
  OWN_KINDS,
  POLICY_SERVERS,
  type PolicyServerObject,
  type ResourceType,
} from '../../../resources/index.ts';
import { SharedCaches } from '../../../runtime/index.ts';
import { CERTIFICATE_NAMESPACE_RULES } from '../../certificates/certificate-rules.ts';
import { PolicyServerObjectsController } from '../policy-server-objects-controller.ts';
import { OBJECT_KINDS, type ObjectKind } from '../object-kinds.ts';
import { POLICY_SERVER_NAMESPACE_RULES, POLICY_SERVER_RULES } from '../policy-server-rules.ts';
import { policyServer, SETTINGS } from './policy-servers.ts';

/** Verbs that change a cluster. */
const WRITES: ReadonlySet<string | symbol> = new Set(['create', 'update', 'patch', 'delete', 'deleteCollection']);

/** Waits until a condition holds. The test's own time limit applies. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await sleep(2);
  }
}

/** An embedded cluster with our kinds and namespace. */
export async function openCluster(): Promise<EmbeddedCluster> {
  const cluster = await EmbeddedCluster.open();
  await prepareCluster(cluster.admin);
  return cluster;
}

/** Creates our kinds and namespace. */
export async function prepareCluster(admin: Cluster, labels: Readonly<Record<string, string>> = {}): Promise<void> {
  const definitions = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
  for (const kind of OWN_KINDS) {
    await admin.create(definitions, customResourceDefinition(kind));
  }
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: SETTINGS.namespace, labels } };
  await admin.create(knownKind('v1', 'Namespace'), namespace);
}

/** Grants a user the rights of the controller, and reads of pods. */
export async function grantController(
  admin: Cluster,
  username: string,
  certificateRules = CERTIFICATE_NAMESPACE_RULES,
): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const apiVersion = `${apiGroup}/v1`;
  const subjects = [{ kind: 'User', apiGroup, name: username }];
  const { namespace } = SETTINGS;
  const name = 'controller';
  const others = [
    // Rights of the other controllers.
    { apiGroups: ['policies.kubewarden.io', 'portcullis.dev'], resources: ['*'], verbs: ['list', 'watch'] },
    { apiGroups: ['admissionregistration.k8s.io'], resources: ['*'], verbs: ['list', 'watch'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
  ];
  const objects = [
    { apiVersion, kind: 'ClusterRole', metadata: { name }, rules: [...POLICY_SERVER_RULES, ...others] },
    {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup, kind: 'ClusterRole', name },
      subjects,
    },
    {
      apiVersion,
      kind: 'Role',
      metadata: { name, namespace },
      rules: [...POLICY_SERVER_NAMESPACE_RULES, ...certificateRules],
    },
    {
      apiVersion,
      kind: 'RoleBinding',
      metadata: { name, namespace },
      roleRef: { apiGroup, kind: 'Role', name },
      subjects,
    },
  ];
  for (const object of objects) {
    await admin.create(knownKind(apiVersion, object.kind), object);
  }
}

/** A running controller, and its writes. */
export class ObjectsScene implements AsyncDisposable {
  readonly admin: Cluster;
  readonly controller: PolicyServerObjectsController;
  readonly registry = new Registry();
  /** `apply Deployment portcullis/policy-server-default`, in order. */
  readonly written: string[] = [];
  readonly lines: { readonly msg: string; readonly [field: string]: unknown }[] = [];
  readonly #stop = new AbortController();
  readonly #running: readonly Promise<void>[];

  /**
   * @param admin a client with all rights
   * @param user the controller's client
   * @param certificateMode who manages the Secrets with certificates
   */
  constructor(admin: Cluster, user: Cluster = admin, certificateMode: 'own' | 'external' = 'own') {
    this.admin = admin;
    const log = pino(
      { level: 'debug', base: null, timestamp: false },
      { write: (line) => void this.lines.push(JSON.parse(line) as { msg: string }) },
    );
    const cluster = this.#counted(user);
    const caches = new SharedCaches({ cluster, log });
    this.controller = new PolicyServerObjectsController({
      cluster,
      caches,
      settings: SETTINGS,
      certificateMode,
      events: { event: () => undefined },
      log,
      registry: this.registry,
    });
    this.#running = [caches.start(this.#stop.signal), this.controller.start(this.#stop.signal)];
  }

  #counted(cluster: Cluster): Cluster {
    return new Proxy(cluster, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') {
          return value;
        }
        return (type: ResourceType, ...args: readonly unknown[]): unknown => {
          if (WRITES.has(property)) {
            const { name = '' } = (args[0] ?? {}) as { name?: string };
            this.written.push(`${String(property)} ${type.kind} ${name}`);
          }
          return Reflect.apply(value, target, [type, ...args]) as unknown;
        };
      },
    });
  }

  async create(
    spec: Partial<PolicyServerObject['spec']> = {},
    metadata: KubernetesObject['metadata'] = {},
  ): Promise<void> {
    const { name = 'default' } = metadata;
    const server = policyServer(spec, name);
    await this.admin.create(POLICY_SERVERS, { ...server, metadata: { ...metadata, name } });
  }

  async change(spec: JsonObject, name = 'default'): Promise<void> {
    await this.admin.patch(POLICY_SERVERS, { name }, { type: 'merge', body: { spec } });
  }

  async policy(name: string, spec: JsonObject = {}): Promise<void> {
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
    await this.admin.create(CLUSTER_ADMISSION_POLICIES, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name },
      spec: { module: 'builtin:pod-security', mutating: false, rules, ...spec },
    });
  }

  /** An object of a PolicyServer; undefined if it does not exist. */
  async object<T extends KubernetesObject = KubernetesObject & { spec: JsonObject }>(
    kind: ObjectKind,
    name = 'policy-server-default',
  ): Promise<T | undefined> {
    const { apiVersion } = OBJECT_KINDS.find((one) => one.kind === kind) ?? { apiVersion: '' };
    const type = knownKind(apiVersion, kind) as ResourceType<T>;
    const key = type.namespaced ? { namespace: SETTINGS.namespace, name } : { name: `portcullis-${name}` };
    return await unlessGone(this.admin.get(type, key));
  }

  /** The kinds of existing objects. */
  async kinds(name = 'policy-server-default'): Promise<readonly ObjectKind[]> {
    const found = await Promise.all(
      OBJECT_KINDS.map(async ({ kind }) => [kind, await this.object(kind, name)] as const),
    );
    return found.filter(([, object]) => object !== undefined).map(([kind]) => kind);
  }

  /** The value of a gauge. */
  async gauge(name: string): Promise<number | undefined> {
    const metric = await this.registry.getSingleMetric(name)?.get();
    return metric?.values[0]?.value;
  }

  /** `Status Reason` of a condition of the report. */
  condition(type: string, name = 'default'): string | undefined {
    const found = this.controller.report(name)?.conditions.find((one) => one.type === type);
    return found === undefined ? undefined : `${found.status} ${found.reason}`;
  }

  message(type: string, name = 'default'): string {
    return this.controller.report(name)?.conditions.find((one) => one.type === type)?.message ?? '';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }
}
