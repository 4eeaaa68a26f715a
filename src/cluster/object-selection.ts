import { quote } from '../go/index.ts';
import { parseFieldSelector, parseLabelSelector, SelectorError } from '../resources/index.ts';
import type { FieldSelector, KubernetesObject, Schema, Selector } from '../resources/index.ts';
import { ApiError } from './api-error.ts';

/** The part of a collection that a request selects. */
export interface SelectionOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** The part of a kind that field selectors depend on. */
export interface SelectableKind {
  readonly origin: 'builtin' | 'custom';
  readonly schema: () => Schema;
  /** Fields besides `metadata.name` and `metadata.namespace`. Default: none. */
  readonly selectableFields?: readonly string[];
}

/** A filter for the objects of a collection. */
export class ObjectSelection {
  readonly namespace: string | undefined;
  readonly #labels: Selector;
  readonly #fields: FieldSelector;
  readonly #readers: readonly (readonly [string, (object: KubernetesObject) => string])[];

  /** @throws ApiError 400 for malformed selectors, and for fields that the kind cannot select. */
  constructor(definition: SelectableKind, options: SelectionOptions) {
    this.namespace = options.namespace;
    this.#labels = parsed(() => parseLabelSelector(options.labelSelector ?? ''));
    this.#fields = parsed(() => parseFieldSelector(options.fieldSelector ?? ''));
    const known = new Set(['metadata.name', 'metadata.namespace', ...(definition.selectableFields ?? [])]);
    this.#readers = this.#fields.requirements.map(({ field }) => {
      if (!known.has(field)) {
        throw ApiError.badRequest(unknownField(definition, field));
      }
      return [field, fieldReader(definition, field)];
    });
  }

  /** The name that the field selector requires, if any. */
  get name(): string | undefined {
    return this.#fields.exactValueOf('metadata.name');
  }

  /** Whether every object of the namespace matches. */
  get isEmpty(): boolean {
    return this.#labels.isEmpty && this.#fields.isEmpty;
  }

  /** Takes stored objects: selectors name the fields of events as `v1` does. */
  matches(object: KubernetesObject): boolean {
    if (this.namespace !== undefined && object.metadata.namespace !== this.namespace) {
      return false;
    }
    return (
      this.#labels.matches(object.metadata.labels) &&
      (this.#fields.isEmpty ||
        this.#fields.matches(Object.fromEntries(this.#readers.map(([field, read]) => [field, read(object)]))))
    );
  }
}

/** API servers use another message for kinds with selectable fields. */
function unknownField({ origin, selectableFields = [] }: SelectableKind, field: string): string {
  return origin === 'custom' || selectableFields.length > 0
    ? `field label not supported: ${field}`
    : `${quote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`;
}

/** Selectable fields whose name is not the path of their value. */
const SPECIAL_FIELDS: Readonly<Record<string, readonly string[]>> = {
  source: ['source.component', 'reportingComponent'],
  'status.successful': ['status.succeeded'],
};

/** Reads the value of a selectable field. */
function fieldReader(definition: SelectableKind, field: string): (object: KubernetesObject) => string {
  const paths = (Object.hasOwn(SPECIAL_FIELDS, field) ? SPECIAL_FIELDS[field] : undefined) ?? [field];
  const absent = definition.origin === 'builtin' ? zeroText(definition.schema(), paths[0] ?? field) : '';
  return (object) => {
    for (const path of paths) {
      const value = valueAt(object, path);
      if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
        return String(value);
      }
    }
    return absent;
  };
}

/** The Go zero value of an absent field. */
function zeroText(schema: Schema, path: string): string {
  let node: Schema | undefined = schema;
  for (const step of path.split('.')) {
    node = node?.properties?.[step];
  }
  switch (node?.type) {
    case 'integer':
    case 'number':
      return '0';
    case 'boolean':
      return 'false';
    default:
      return '';
  }
}

function valueAt(object: KubernetesObject, path: string): unknown {
  let value: unknown = object;
  for (const step of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) {
      return undefined;
    }
    value = (value as Readonly<Record<string, unknown>>)[step];
  }
  return value;
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
