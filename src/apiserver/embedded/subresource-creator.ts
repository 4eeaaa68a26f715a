// Create requests whose object is not stored: reviews, token requests, evictions.
import { ApiError } from '../../cluster/index.ts';
import type { SubresourceOptions, WriteOptions } from '../../cluster/index.ts';
import { apiVersionOf, isJsonObject } from '../../resources/index.ts';
import type { KubernetesObject, ObjectMeta, ResourceType } from '../../resources/index.ts';
import { notServed } from '../not-served.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import type { Reviews } from './authentication/reviews.ts';
import { authorize, servedResource } from './objects/cluster-context.ts';
import type { Caller, ClusterContext } from './objects/cluster-context.ts';
import type { ObjectDeleter } from './objects/object-deletion.ts';
import { receivedObject } from './kinds/received-object.ts';
import type { AdmissionAttributes } from './request/request.ts';
import { admissionOptions, onWarningOf } from './objects/write.ts';

/** The kinds of objects that are posted to subresources. */
const SUBRESOURCE_KINDS: ReadonlyMap<string, readonly [apiVersion: string, kind: string]> = new Map([
  ['eviction', ['policy/v1', 'Eviction']],
  ['token', ['authentication.k8s.io/v1', 'TokenRequest']],
]);

/** Handles create requests for subresources and reviews. */
export class SubresourceCreator {
  readonly #context: ClusterContext;
  readonly #deleter: ObjectDeleter;
  readonly #reviews: Reviews;

  constructor(context: ClusterContext, deleter: ObjectDeleter, reviews: Reviews) {
    this.#context = context;
    this.#deleter = deleter;
    this.#reviews = reviews;
  }

  /** Whether create requests for a resource or subresource are handled here. */
  handles(type: ResourceType, subresource: string | undefined): boolean {
    return subresource !== undefined || this.#reviews.handles(type);
  }

  async create(
    caller: Caller,
    type: ResourceType,
    given: KubernetesObject,
    options: WriteOptions & SubresourceOptions,
  ): Promise<KubernetesObject> {
    const { definition } = servedResource(this.#context, type);
    const { subresource } = options;
    const [apiVersion, kind] = SUBRESOURCE_KINDS.get(subresource ?? '') ?? [apiVersionOf(definition), definition.kind];
    const object: KubernetesObject = receivedObject(given, apiVersion, kind);
    const { namespace, name } = textsOf(object.metadata);
    authorize(this.#context, caller, 'create', type, {
      namespace: definition.namespaced ? namespace : undefined,
      name: subresource === undefined ? undefined : name,
      subresource,
    });
    const isEviction = apiVersionOf(type) === 'v1' && type.resource === 'pods' && subresource === 'eviction';
    if (!isEviction && !this.#reviews.handles(type, subresource)) {
      throw notServed();
    }
    const admitted = await this.#admitted(caller, definition, object, options);
    return isEviction
      ? this.#evict(caller, type, admitted, options)
      : this.#reviews.handle({
          group: type.group,
          resource: type.resource,
          subresource,
          namespace,
          name,
          user: caller.user,
          object: admitted,
        });
  }

  /** Runs admission. Returns the mutated object. */
  async #admitted(
    caller: Caller,
    definition: ResourceDefinition,
    object: KubernetesObject,
    options: WriteOptions & SubresourceOptions,
  ): Promise<KubernetesObject> {
    const { namespace, name = '' } = textsOf(object.metadata);
    const request: AdmissionAttributes = {
      user: caller.user,
      operation: 'CREATE',
      definition,
      subresource: options.subresource,
      namespace,
      name,
      object,
      oldObject: null,
      dryRun: options.dryRun === true,
      options: admissionOptions({ caller, options }, 'CREATE'),
    };
    const { admission } = this.#context;
    const onWarning = onWarningOf(options);
    const admitted = (await admission.mutate(request, onWarning, options.signal)) ?? object;
    await admission.validate({ ...request, object: admitted }, onWarning, options.signal);
    return admitted;
  }

  /** Deletes the pod. PodDisruptionBudgets are ignored, because no controller computes their status. */
  async #evict(
    caller: Caller,
    type: ResourceType,
    eviction: KubernetesObject,
    options: WriteOptions,
  ): Promise<KubernetesObject> {
    const { namespace, name } = textsOf(eviction.metadata);
    if (namespace === undefined || name === undefined) {
      throw ApiError.badRequest('an eviction names a pod: expected metadata.namespace and metadata.name');
    }
    const dryRun = options.dryRun === true || isDryRun(eviction['deleteOptions']);
    await this.#deleter.delete({ ...caller, isInternal: true }, type, { namespace, name }, { ...options, dryRun });
    return {
      apiVersion: 'v1',
      kind: 'Status',
      metadata: {},
      status: 'Success',
      code: 201,
    };
  }
}

/**
 * Whether the deleteOptions of an eviction request a dry run. The other options have no effect without nodes.
 * @throws ApiError 400 for a malformed `dryRun`. If it were ignored, the pod would be deleted.
 */
function isDryRun(deleteOptions: unknown): boolean {
  const dryRun = isJsonObject(deleteOptions) ? deleteOptions['dryRun'] : undefined;
  if (dryRun === undefined || dryRun === null) {
    return false;
  }
  if (!Array.isArray(dryRun) || dryRun.some((stage) => stage !== 'All')) {
    throw ApiError.badRequest('deleteOptions.dryRun: expected a list that contains only "All"');
  }
  return dryRun.length > 0;
}

/** The namespace and name of the parent, if they are strings. */
function textsOf({ namespace, name }: ObjectMeta): { readonly namespace?: string; readonly name?: string } {
  return {
    ...(typeof namespace === 'string' ? { namespace } : {}),
    ...(typeof name === 'string' ? { name } : {}),
  };
}
