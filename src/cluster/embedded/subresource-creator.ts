// What is created and not stored: reviews, tokens, evictions.
import type { KubernetesObject, ResourceType } from '../../resources/index.ts';
import type { SubresourceOptions, WriteOptions } from '../cluster.ts';
import { notServed } from './machine.ts';
import type { Caller } from './machine.ts';

/** Answers what is only created. */
export class SubresourceCreator {
  answers(_type: ResourceType, subresource: string | undefined): boolean {
    return subresource !== undefined;
  }

  async create(
    _caller: Caller,
    _type: ResourceType,
    _object: KubernetesObject,
    _options: WriteOptions & SubresourceOptions,
  ): Promise<KubernetesObject> {
    throw notServed();
  }
}
