import { addErrors, invalid, limitErrors } from '../field-error.ts';
import type { FieldError } from '../field-error.ts';
import type { JsonObject } from '../../values/index.ts';
import type { KubernetesObject, MutableObject } from '../kubernetes-object.ts';
import type { Schema } from '../schema.ts';
import { Correlation } from './correlation.ts';
import { Defaults, removeNulls } from './defaulting.ts';
import { embeddedErrors } from './embedded-resources.ts';
import { listErrors } from './list-types.ts';
import { unknownFields } from './pruning.ts';
import { SchemaRules } from './rules.ts';
import { NO_PATH } from './schema-result.ts';
import { SchemaValidator } from './schema-validator.ts';

/** Errors after which rules are not run, because rules rely on valid types and sizes. */
const BLOCKING = new Set<FieldError['reason']>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

/**
 * Processing of whole objects by a schema, like in API servers: defaults, unknown fields, validation with their
 * messages, and rules in CEL. Reads schemas lazily; rules are compiled on first use. Create one per version of a kind.
 */
export class ObjectSchema {
  readonly #schema: Schema;
  readonly #areSorted: boolean;
  readonly #defaults = new Defaults();
  readonly #validator = new SchemaValidator();
  /** Lists and embedded objects in `metadata` have their own rules. */
  readonly #withoutMetadata: Schema;
  #rules: SchemaRules | 'none' | undefined;

  /**
   * @param options.unknownFieldsIn the order of unknown fields: sorted for custom kinds, as in the document for builtin
   * ones
   */
  constructor(schema: Schema, { unknownFieldsIn = 'order' }: { readonly unknownFieldsIn?: 'order' | 'document' } = {}) {
    this.#schema = schema;
    this.#areSorted = unknownFieldsIn === 'order';
    const { metadata: _metadata, ...properties } = schema.properties ?? {};
    this.#withoutMetadata = { ...schema, properties };
  }

  /** Sets defaults, and removes nulls that are not nullable. Changes the object. */
  applyDefaults(object: MutableObject): void {
    removeNulls(object as JsonObject, this.#schema);
    this.#defaults.fill(object as JsonObject, this.#schema);
  }

  /** Removes unknown fields. Returns their paths (`spec.foo`), in order. */
  prune(object: MutableObject): string[] {
    return unknownFields(object as JsonObject, this.#schema, { isRemoving: true, areSorted: this.#areSorted });
  }

  /** Paths of unknown fields, in order, which strict validation reports. */
  unknownFields(object: KubernetesObject): string[] {
    return unknownFields(object as JsonObject, this.#schema, {
      isRemoving: false,
      areSorted: this.#areSorted,
    });
  }

  /**
   * Mistakes in an object with defaults. In an update (`old` given), unchanged mistakes are ignored.
   *
   * @param more errors of the kind's own validation (`ResourceDefinition.validate`): they follow those of the schema,
   * and some of them also prevent rules from running
   */
  validate(object: KubernetesObject, old?: KubernetesObject, more: readonly FieldError[] = []): FieldError[] {
    const value = object as JsonObject;
    const oldValue = old as JsonObject | undefined;
    const correlation = oldValue === undefined ? undefined : new Correlation(value, oldValue, this.#schema);
    const result = this.#validator.validate(value, this.#schema, '', correlation);
    const errors = [...Array.from(result.problems, ({ error }) => error), ...more];
    addErrors(errors, embeddedErrors(value, this.#withoutMetadata, ''));
    if (oldValue === undefined || listErrors(oldValue, this.#withoutMetadata, '').length === 0) {
      addErrors(errors, listErrors(value, this.#withoutMetadata, ''));
    }
    this.#rules ??= SchemaRules.of(this.#schema) ?? 'none';
    if (this.#rules === 'none') {
      return limitErrors(errors);
    }
    return errors.some(({ reason }) => BLOCKING.has(reason))
      ? [...limitErrors(errors), RULES_NOT_RUN]
      : limitErrors([...errors, ...this.#rules.errors(value, oldValue, correlation)]);
  }
}

const RULES_NOT_RUN = invalid(
  NO_PATH,
  null,
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
);
