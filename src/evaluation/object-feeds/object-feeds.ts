// What evaluation looks up in a cluster: namespaces and parameters of policies, each while policies need it.
import type { Cluster } from '../../cluster/index.ts';
import { moduleUses } from '../../engine/definition/index.ts';
import type { ObjectReference, PolicyDefinition } from '../../engine/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import type { FindResult } from '../watched-objects.ts';
import { NamespaceFeed, type NamespaceFeedOptions } from './namespace-feed.ts';
import { type ChangedNeeds, objectNeeds } from './object-needs.ts';
import { ParameterFeed } from './parameter-feed.ts';

export interface ObjectFeedsOptions extends NamespaceFeedOptions {
  /** Reads namespaces. */
  readonly cluster: Cluster;
  /** Reads parameters: the cluster with the account of policies. Default: `cluster`. */
  readonly policyCluster?: Cluster | undefined;
}

/** A policy, and the requests that it matches, where that is known. */
interface NeedingPolicy {
  readonly id: string;
  readonly definition: PolicyDefinition;
  readonly match?: PolicyMatch | undefined;
}

/** Publishes the objects that evaluation looks up, and each change of them. */
export class ObjectFeeds {
  readonly #namespaces: NamespaceFeed;
  readonly #parameters: ParameterFeed;

  constructor(options: ObjectFeedsOptions) {
    const { cluster, policyCluster = cluster, publish, log } = options;
    this.#namespaces = new NamespaceFeed(options);
    this.#parameters = new ParameterFeed({ cluster: policyCluster, publish, log });
  }

  /** Updates what policies need; `isFirst`: these are all policies. */
  want(changes: ChangedNeeds, isFirst: boolean): void {
    this.#namespaces.want(changes, isFirst);
    this.#parameters.want(changes, isFirst);
  }

  /** Updates what policies need, from their definitions: these are all policies. */
  wantOnly(policies: Iterable<NeedingPolicy>): void {
    const needs = [...policies].map(
      ({ id, definition, match }) => [id, objectNeeds(moduleUses(definition), [match])] as const,
    );
    this.want(new Map(needs), true);
  }

  /** Reads one object and publishes it. Never rejects. */
  find(object: ObjectReference): Promise<FindResult> {
    return object.apiVersion === 'v1' && object.kind === 'Namespace'
      ? this.#namespaces.find(object.name)
      : this.#parameters.find(object);
  }

  /** Called when the cluster could not be read: see {@link NamespaceFeed.failed}. */
  failed(error: unknown): void {
    this.#namespaces.failed(error);
  }

  /** Resolves when what is recorded is on disk. */
  async stop(): Promise<void> {
    this.#parameters.stop();
    await this.#namespaces.stop();
  }
}
