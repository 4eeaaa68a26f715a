import { addErrors, invalid, limitErrors } from '../field-error.ts';
import type { FieldError } from '../field-error.ts';
import type { JsonObject } from '../json.ts';
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

/** Errors after which rules are not run: they may rely on what is wrong. */
const BLOCKING = new Set<FieldError['reason']>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

/**
 * What API servers do with a schema of whole objects: defaults, unknown fields, validation with their messages, and rules in
 * CEL. Reads schemas lazily; rules are compiled when they first run. One for each version of a kind, used again and again.
 */
export class ObjectSchema {
  readonly #schema: Schema;
  readonly #areSorted: boolean;
  readonly #defaults = new Defaults();
  readonly #validator = new SchemaValidator();
  /** Lists and embedded objects in `metadata` have rules of their own. */
  readonly #withoutMetadata: Schema;
  #rules: SchemaRules | 'none' | undefined;

  /** @param options.unknownFieldsIn in which order unknown fields are named: sorted for custom kinds, as in the document for builtin ones */
  constructor(schema: Schema, { unknownFieldsIn = 'order' }: { readonly unknownFieldsIn?: 'order' | 'document' } = {}) {
    this.#schema = schema;
    this.#areSorted = unknownFieldsIn === 'order';
    const { metadata: _metadata, ...properties } = schema.properties ?? {};
    this.#withoutMetadata = { ...schema, properties };
  }

  /** Fills in defaults, and removes nulls that may not be. Changes the object. */
  applyDefaults(object: MutableObject): void {
    removeNulls(object as JsonObject, this.#schema);
    this.#defaults.fill(object as JsonObject, this.#schema);
  }

  /** Removes fields that the schema does not know. Gives their paths (`spec.foo`), in order. */
  prune(object: MutableObject): string[] {
    return unknownFields(object as JsonObject, this.#schema, { isRemoving: true, areSorted: this.#areSorted });
  }

  /** Paths of the fields that the schema does not know, in order: what strict validation refuses. */
  unknownFields(object: KubernetesObject): string[] {
    return unknownFields(object as JsonObject, this.#schema, {
      isRemoving: false,
      areSorted: this.#areSorted,
    });
  }

  /**
   * What is wrong with an object that has its defaults. Of an update (`old` given), what was wrong before and did not change
   * is not held against it.
   *
   * @param more errors that the kind found beside its schema (`ResourceDefinition.validate`): they stand behind those of the
   * schema, and rules are not run for some of them either
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
