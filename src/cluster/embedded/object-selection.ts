import {
  FieldSelector,
  parseFieldSelector,
  parseLabelSelector,
  Selector,
  SelectorError,
} from '../../resources/index.ts';
import type { KubernetesObject, ResourceDefinition } from '../../resources/index.ts';
import { ApiError } from '../api-error.ts';

/** What a request for many objects is for. */
export interface SelectionOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** Which objects of a collection a request is for. */
export class ObjectSelection {
  readonly namespace: string | undefined;
  readonly #labels: Selector;
  readonly #fields: FieldSelector;
  readonly #fieldNames: readonly string[];

  /** @throws ApiError 400 for selectors that the kind does not have, or that are none. */
  constructor(definition: ResourceDefinition, options: SelectionOptions) {
    this.namespace = options.namespace;
    this.#labels = parsed(() => parseLabelSelector(options.labelSelector ?? ''));
    this.#fields = parsed(() => parseFieldSelector(options.fieldSelector ?? ''));
    this.#fieldNames = this.#fields.requirements.map(({ field }) => field);
    const known = new Set(['metadata.name', 'metadata.namespace', ...(definition.selectableFields ?? [])]);
    for (const field of this.#fieldNames) {
      if (!known.has(field)) {
        throw ApiError.badRequest(`field label not supported: ${field}`);
      }
    }
  }

  /** The one name that can match, where the selector says so. */
  get name(): string | undefined {
    return this.#fields.exactValueOf('metadata.name');
  }

  /** Whether all objects of the namespace match. */
  get isEmpty(): boolean {
    return this.#labels.isEmpty && this.#fields.isEmpty;
  }

  matches(object: KubernetesObject): boolean {
    if (this.namespace !== undefined && object.metadata.namespace !== this.namespace) {
      return false;
    }
    return (
      this.#labels.matches(object.metadata.labels) &&
      (this.#fields.isEmpty ||
        this.#fields.matches(Object.fromEntries(this.#fieldNames.map((field) => [field, fieldText(object, field)]))))
    );
  }
}

/** The value of a field as selectors compare it; empty when there is none. */
function fieldText(object: KubernetesObject, path: string): string {
  let value: unknown = object;
  for (const step of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) {
      return '';
    }
    value = (value as Readonly<Record<string, unknown>>)[step];
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof SelectorError) {
      throw ApiError.badRequest(error.message);
    }
    throw error;
  }
}
