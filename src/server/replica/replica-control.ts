// A replica's communication: its control port, its report to the cluster, its peers.
import { PRODUCT_VERSION } from '../../modules/index.ts';
import { CONTROLLER_REPLICAS, POLICY_SERVER_LABEL, POLICY_SERVER_REPLICAS } from '../../resources/index.ts';
import type { ControllerReplica, PolicyServerReplica } from '../../resources/index.ts';
import { ObjectCache } from '../../runtime/index.ts';
import { hostText } from '../../https/index.ts';
import type { Logger } from '../../log/index.ts';
import { settledWithin } from '../policies/policy-source.ts';
import { ControlEndpoint } from '../../control/index.ts';
import type { ControlEndpointOptions } from '../../control/index.ts';
import { PeerDirectory, type PeersListener } from './peer-directory.ts';
import type { ClusterPoliciesOptions } from './cluster-policies-options.ts';
import { ReplicaReporter } from './replica-report.ts';
import type { ReplicaState } from './replica-state.ts';

/** A multiple of the time that an available cluster takes to list a few objects. Milliseconds. */
export const PEERS_WAIT_MS = 1_000;

export interface ReplicaControlOptions extends Pick<ControlEndpointOptions, 'uses' | 'prevalidate' | 'readModule'> {
  readonly replica: ClusterPoliciesOptions;
  readonly state: ReplicaState;
  /** See {@link PeerDirectory.subscribe}. */
  readonly peersChanged: PeersListener;
  readonly log: Logger;
}

/** Assembly of {@link ControlEndpoint}, {@link ReplicaReporter} and {@link PeerDirectory}. */
export class ReplicaControl {
  readonly #options: ReplicaControlOptions;
  readonly #endpoint: ControlEndpoint;
  readonly #replicas: ObjectCache<PolicyServerReplica>;
  readonly #controllers: ObjectCache<ControllerReplica>;
  readonly #reporting = new AbortController();
  readonly #following = new AbortController();
  #ended: readonly Promise<unknown>[] = [];

  constructor(options: ReplicaControlOptions) {
    const { replica, state, uses, prevalidate, readModule, log } = options;
    this.#options = options;
    this.#endpoint = new ControlEndpoint({
      ...replica.control,
      replica: replica.name,
      policyServer: replica.policyServer,
      version: PRODUCT_VERSION,
      reports: state,
      ...(uses && { uses }),
      prevalidate,
      readModule,
      log,
    });
    this.#replicas = new ObjectCache({
      cluster: replica.cluster,
      type: POLICY_SERVER_REPLICAS,
      namespace: replica.namespace,
      labelSelector: `${POLICY_SERVER_LABEL}=${replica.policyServer}`,
      log,
    });
    this.#controllers = new ObjectCache({
      cluster: replica.cluster,
      type: CONTROLLER_REPLICAS,
      namespace: replica.namespace,
      log,
    });
  }

  /**
   * Starts listening and reporting. Resolves with `host:port` for other replicas, once peers are known, so that modules
   * can be fetched from them. Waits for an unavailable cluster at most {@link PEERS_WAIT_MS}.
   * @throws HttpsError 'port-busy', 'tls-invalid'
   */
  async start(): Promise<string> {
    const { replica, state, peersChanged, log } = this.#options;
    const { cluster, namespace, policyServer, name, pod, control } = replica;
    const port = await this.#endpoint.start();
    const controlAddress = `${hostText(control.advertise ?? control.host)}:${port}`;
    const replicas = this.#replicas;
    const controllers = this.#controllers;
    const reporter = new ReplicaReporter({
      cluster,
      namespace,
      policyServer,
      name,
      ...(pod === undefined ? {} : { pod }),
      controlAddress,
      version: PRODUCT_VERSION,
      state,
      replicas,
      log,
    });
    new PeerDirectory({ replicas, controllers, namespace, policyServer, name }).subscribe(peersChanged);
    this.#ended = [
      Promise.all([replicas.start(this.#following.signal), controllers.start(this.#following.signal)]),
      reporter.start(this.#reporting.signal),
    ];
    // A cache that is stopped before its first sync rejects.
    await settledWithin(
      Promise.all([replicas.synced, controllers.synced]).then(
        () => undefined,
        () => undefined,
      ),
      PEERS_WAIT_MS,
    );
    return controlAddress;
  }

  /** Removes the report, then ends the streams, so that controllers see a removed replica instead of a lost one. */
  async stop(): Promise<void> {
    this.#reporting.abort();
    await this.#ended[1];
    this.#following.abort();
    await Promise.all([this.#ended[0], this.#endpoint.stop()]);
  }
}
