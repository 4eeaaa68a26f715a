// Assembles the controllers of a cluster: replicas, policies, the webhook for our own kinds, governance, NetworkPolicies.
import { AuditorPresence, UnauditedPolicies } from '../audit/absence/index.ts';
import { AUDITOR_RULES } from '../audit/access-rules/index.ts';
import type { Cluster } from '../cluster/index.ts';
import { GovernanceControllers, OtherControllers } from '../governance/index.ts';
import { GOVERNANCE_CONTROLLER_RULES } from '../governance/access-rules/index.ts';
import type { GovernanceSettings } from '../governance/settings/index.ts';
import { type LoadCatalogue, NetworkPolicyControllers, ReportGuard, StatusRemoval } from '../network-policy/index.ts';
import { NETWORK_POLICY_STATUS_RULES } from '../network-policy/access-rules/index.ts';
import type { AnnotationMode } from '../network-policy/settings/index.ts';
import {
  CopyService,
  type CopySettings,
  DURABLE_MODULES,
  ExceptionController,
  LifecycleControllers,
  OwnKindsWebhook,
  type OwnKindsWebhookOptions,
  PolicyServerController,
  PolicyTypeChecks,
  ReplicaHub,
  type RolloutSettings,
  type WebhookTarget,
} from '../lifecycle/index.ts';
import {
  aborted,
  type ControlledCluster,
  type LeaderElector,
  withWriteBackoff,
  type Runnable,
  Runtime,
  SharedCaches,
} from '../runtime/index.ts';
import { NETWORK_POLICY_PROVIDERS, POLICY_REVISIONS } from '../resources/index.ts';
import type { ControlTls } from '../control/index.ts';
import { type ManagedOptions, ManagedServers } from './managed-servers.ts';

export interface AssemblyOptions {
  /** Its account needs the rights of CONTROLLER_RULES. */
  readonly controlled: ControlledCluster;
  /** Default: this process leads. */
  readonly elector?: LeaderElector;
  /** The namespace of Portcullis. */
  readonly namespace: string;
  readonly settings: RolloutSettings;
  /** Certificates of control connections. */
  readonly tls: ControlTls;
  /** Where this process keeps copies of modules; `durable` if it keeps none, because module caches are on a disk that stays. */
  readonly copies: CopySettings | 'durable';
  /** The webhook address of a policy server by its name, or the options for managing policy servers. */
  readonly servers: ((policyServer: string) => WebhookTarget) | ManagedOptions;
  /** Namespaces that cluster-wide policies do not cover. Default: those of a new cluster. */
  readonly exemptNamespaces?: readonly string[];
  /**
   * Users whose requests policies do not cover: those of Portcullis. A star at the end matches any suffix. The users of managed
   * policy servers are added.
   */
  readonly identities: readonly string[];
  /** The webhook for our own kinds. Default: none, and policies are not validated when they are written. */
  readonly webhook?: WebhookOptions;
  /** Default: none, and governance policies are left alone. */
  readonly governance?: AssembledGovernance;
  /** Whether there is an auditor. While none works, statuses of policies say so. Default: that is not known, and nothing is said. */
  readonly isAudited?: boolean;
  /** Whether API servers have to ask who may except from policies, before exceptions are accepted. Default: yes. */
  readonly isExemptGuarded?: boolean;
  /**
   * Whether NetworkPolicies have statuses; false: those that were written are removed. The account then needs the rights of
   * NETWORK_POLICY_READER_RULES and NETWORK_POLICY_STATUS_RULES. Default: they are left alone.
   */
  readonly networkPolicyStatus?: boolean;
  /** Whether these statuses are repeated in annotations of NetworkPolicies. Default: `none`. */
  readonly networkPolicyAnnotation?: AnnotationMode;
  /** Default: the builtin catalogue of network providers. */
  readonly networkPolicyCatalogue?: LoadCatalogue | undefined;
}

/** Options of the webhook for our own kinds; without `ca` when policy servers are managed. */
export type WebhookOptions = Omit<
  OwnKindsWebhookOptions,
  'cluster' | 'caches' | 'namespace' | 'log' | 'metrics' | 'ca'
> &
  Partial<Pick<OwnKindsWebhookOptions, 'ca'>>;

/** The governance of a controller, whose cluster's account then needs the rights of GOVERNANCE_CONTROLLER_RULES, too. */
interface AssembledGovernance {
  readonly settings: GovernanceSettings;
  /** The cluster as the governance account. */
  readonly governed: Cluster;
}

export interface AssembledController {
  readonly runtime: Runtime;
  /** Resolves when the caches are filled and the webhook answers, maybe before this process leads. */
  readonly ready: Promise<unknown>;
  /** Resolves when this process leads, has reconciled every admission policy once, and governance has started. */
  readonly working: Promise<unknown>;
  readonly webhook: OwnKindsWebhook | undefined;
}

/** The controllers of one cluster, which share nothing with those of others in this process. */
export function assembleController(options: AssemblyOptions): AssembledController {
  const { controlled, elector, namespace, tls } = options;
  const { cluster, caches, events, registry, metrics, log } = controlled;
  const shared = { ...controlled, namespace };
  const managed = typeof options.servers === 'function' ? undefined : new ManagedServers(options.servers, shared);
  const typeChecks = new PolicyTypeChecks({ cluster, log });
  const replicas = new ReplicaHub({ cluster, caches, namespace, tls, log, registry });
  const copies =
    options.copies === 'durable'
      ? undefined
      : new CopyService({ ...options.copies, cluster, caches, namespace, tls, log });
  const policyServers = new PolicyServerController({
    ...shared,
    cluster: withWriteBackoff(cluster, { log }),
    replicas,
    ...(managed === undefined ? {} : { objects: managed.objects }),
  });
  const { exemptNamespaces, identities, servers, settings } = options;
  const policies = new LifecycleControllers({
    ...shared,
    settings,
    replicas,
    copies: copies?.ofPolicies ?? DURABLE_MODULES,
    typeChecks,
    identities: { [Symbol.iterator]: () => [...identities, ...(managed?.identities() ?? [])].values() },
    ...(exemptNamespaces === undefined ? {} : { exemptNamespaces }),
    ...(options.isAudited === undefined ? {} : { isAudited: options.isAudited }),
    furtherRules: [
      ...(options.isAudited === false ? [] : AUDITOR_RULES),
      ...(options.governance === undefined ? [] : GOVERNANCE_CONTROLLER_RULES),
      ...(options.networkPolicyStatus === undefined ? [] : NETWORK_POLICY_STATUS_RULES),
    ],
    target: typeof servers === 'function' ? servers : (name) => managed?.target(name),
    ...(managed === undefined
      ? {}
      : { isOurs: (name) => managed.ownership.isOurs(name), isReachable: (name) => managed.isReachable(name) }),
  });
  const governance = options.governance && governanceParts(options.governance, controlled, namespace);
  const exceptionCaches = new SharedCaches({ cluster, log, metrics });
  const exceptions = new ExceptionController({
    cluster: withWriteBackoff(cluster, { log }),
    caches: exceptionCaches,
    policies: caches,
    replicas,
    ...(options.isAudited === undefined ? {} : { isAudited: options.isAudited }),
    isGuarded: options.isExemptGuarded ?? true,
    events,
    registry,
    log,
    metrics,
  });
  const networkPolicyCaches = new SharedCaches({ cluster, log, metrics });
  const reportGuard = new ReportGuard(networkPolicyCaches.cache(NETWORK_POLICY_PROVIDERS));
  const webhook =
    options.webhook === undefined
      ? undefined
      : new OwnKindsWebhook({
          ca: managed?.certificates ?? '',
          ...options.webhook,
          reached: managed?.reached,
          appliesVerification: managed !== undefined,
          ...(governance === undefined ? {} : { contributed: [governance.controllers.reviews] }),
          ...(options.networkPolicyStatus === undefined ? {} : { guarded: [reportGuard] }),
          ...(managed === undefined
            ? {}
            : {
                tenantHosts: (name) => managed.tenantHosts(name),
                tenantModules: (name) => managed.tenantModules(name),
                tenantCapabilities: (name) => managed.tenantCapabilities(name),
                kubewardenFinalizer: (name) => managed.kubewardenFinalizer(name),
              }),
          cluster: withWriteBackoff(cluster, { log }),
          caches,
          namespace,
          typeChecks,
          log,
          metrics,
        });
  const runtime = new Runtime({ log, ...(elector === undefined ? {} : { elector }) }).add('cache', caches);
  runtime.add('server', typeChecks);
  const cached = Promise.withResolvers<void>();
  runtime.add(
    'server',
    once('cached', () => cached.resolve()),
  );
  if (copies !== undefined) {
    runtime.add('server', copies);
  }
  if (webhook !== undefined) {
    runtime.add('server', webhook).add('leader', webhook.registration);
  }
  runtime.add(
    'leader',
    once('leading', () => log.info('leading')),
    events,
    replicas,
    ...(copies === undefined ? [] : [copies.directory]),
    policyServers,
    policies,
    exceptions,
  );
  if (options.isAudited !== undefined) {
    const presence = new AuditorPresence({ cluster, namespace, isExpected: options.isAudited, log, registry });
    runtime.add('leader', presence, new UnauditedPolicies({ cluster, caches, presence, log, metrics }));
  }
  // Without `ready`: an older installation does not serve the kind.
  runtime.add('cache', { name: 'exception caches', start: (signal) => exceptionCaches.start(signal) });
  if (managed !== undefined) {
    const { certificates, files, objects, ownership, reached } = managed;
    reached.subscribe(() => policies.targetsChanged());
    certificates.subscribe(() => policies.targetsChanged());
    ownership.subscribe((name) => policies.policyServerChanged(name));
    runtime.add('cache', ...files).add('leader', certificates, objects);
  }
  if (governance !== undefined) {
    const { caches: governed, controllers } = governance;
    // Without `ready`.
    runtime.add('cache', { name: 'governance caches', start: (signal) => governed.start(signal) });
    runtime.add('leader', controllers);
  }
  const { networkPolicyAnnotation: annotation, networkPolicyCatalogue: loadCatalogue } = options;
  if (options.networkPolicyStatus !== undefined) {
    // Without `ready`.
    runtime.add('cache', { name: 'network policy caches', start: (signal) => networkPolicyCaches.start(signal) });
  }
  if (options.networkPolicyStatus === true) {
    runtime.add(
      'leader',
      new NetworkPolicyControllers({
        cluster,
        caches: networkPolicyCaches,
        events,
        registry,
        log,
        metrics,
        annotation,
        ...(loadCatalogue === undefined ? {} : { loadCatalogue }),
      }),
    );
  } else if (options.networkPolicyStatus === false) {
    runtime.add('leader', new StatusRemoval({ cluster, log }));
  }
  return {
    runtime,
    ready: Promise.all([cached.promise, webhook?.ready, copies?.ready]),
    working: Promise.all([policies.ready, webhook?.registration.ready, governance?.controllers.ready]),
    webhook,
  };
}

interface GovernanceParts {
  readonly caches: SharedCaches;
  readonly controllers: GovernanceControllers;
}

/** The controllers of governance policies, with caches of their own: missing kinds of theirs keep nothing else waiting. */
function governanceParts(
  { settings, governed }: AssembledGovernance,
  { cluster, caches: shared, events, registry, metrics, log }: ControlledCluster,
  namespace: string,
): GovernanceParts {
  const caches = new SharedCaches({ cluster, log, metrics });
  const others = new OtherControllers({ caches, events, log, registry });
  const controllers = new GovernanceControllers({
    cluster,
    governed,
    caches,
    settings,
    kept: { revisions: shared.cache(POLICY_REVISIONS, { namespace }), namespace },
    others,
    events,
    log,
    metrics,
    registry,
  });
  return { caches, controllers };
}

/** A part that only calls `onStart`, in the order of the start groups. */
function once(name: string, onStart: () => void): Runnable {
  return {
    name,
    start: async (signal) => {
      onStart();
      await aborted(signal);
    },
  };
}
