import { CodedError } from '../../values/index.ts';

/** The field by which the items of a list are identified, instead of `name`. */
export interface ListKey {
  /** The list, from the root of the object; lists within the path need no index: `spec.template.spec.containers.ports`. */
  readonly path: string;
  /** A field of each item: `containerPort`. */
  readonly key: string;
}

/** A list key that cannot be used. */
export class ListKeyError extends CodedError<'invalid-list-key'> {
  override readonly name = 'ListKeyError';
}

/** The field that identifies items of lists without a {@link ListKey}. */
export const DEFAULT_KEY = 'name';
/** A field, also written as `containers[]` if it is a list. */
const PATH_PART = /^([^[\].]+)(?:\[\])?$/;

interface Rule {
  readonly steps: readonly string[];
  readonly key: string;
}

/** The list keys that apply at one place of an object, and below it. */
export class ListKeys {
  readonly #rules: readonly Rule[];

  private constructor(rules: readonly Rule[]) {
    this.#rules = rules;
  }

  /** @throws ListKeyError */
  static of(keys: readonly ListKey[]): ListKeys {
    return new ListKeys(keys.map(ruleOf));
  }

  /** The list keys that apply in a field of the object at this place. */
  field(name: string): ListKeys {
    return this.#narrowed(
      this.#rules.flatMap(({ steps: [first, ...steps], key }) => (first === name ? [{ steps, key }] : [])),
    );
  }

  /** The list keys that apply in the items of the list at this place. */
  items(): ListKeys {
    return this.#narrowed(this.#rules.filter(({ steps }) => steps.length > 0));
  }

  /** The field that identifies the items of the list at this place. */
  get key(): string {
    return this.#rules.find(({ steps }) => steps.length === 0)?.key ?? DEFAULT_KEY;
  }

  #narrowed(rules: readonly Rule[]): ListKeys {
    return rules.length === 0 ? NO_LIST_KEYS : new ListKeys(rules);
  }
}

/** Items are identified by `name` everywhere. */
export const NO_LIST_KEYS: ListKeys = ListKeys.of([]);

function ruleOf({ path, key }: ListKey): Rule {
  if (key === '') {
    throw new ListKeyError('invalid-list-key', `the list key of "${path}" is empty: expected the name of a field`);
  }
  const steps = path.split('.').map((part) => {
    const field = PATH_PART.exec(part)?.[1];
    if (field === undefined) {
      const expected = 'names of fields separated by dots, such as "spec.template.spec.containers.ports"';
      throw new ListKeyError('invalid-list-key', `the path "${path}" of a list key is invalid: expected ${expected}`);
    }
    return field;
  });
  return { steps, key };
}
