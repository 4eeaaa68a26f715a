import { CodedError } from '../../values/index.ts';

/** The field by which the items of a list are identified, instead of `name`. */
export interface ListKey {
  /** The list, from the root of the object: `spec.ports`, `spec.template.spec.containers[].ports`. */
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
/** The step of a path from a list to its items. */
const ITEMS = '[]';
/** A field, and any number of steps into nested lists: `ports`, `containers[]`. */
const PATH_PART = /^([^[\].]+)((?:\[\])*)$/;

interface Rule {
  readonly steps: readonly string[];
  readonly key: string;
}

/** The list keys that apply at one place of an object, and below it. */
export class ListKeys {
  readonly #rules: readonly Rule[];

  /** No list keys: items are identified by `name` everywhere. */
  static readonly NONE: ListKeys = new ListKeys([]);

  private constructor(rules: readonly Rule[]) {
    this.#rules = rules;
  }

  /** @throws ListKeyError */
  static of(keys: readonly ListKey[]): ListKeys {
    return new ListKeys(keys.map(ruleOf));
  }

  /** The list keys that apply in a field of the object at this place. */
  field(name: string): ListKeys {
    return this.#step(name);
  }

  /** The list keys that apply in the items of the list at this place. */
  items(): ListKeys {
    return this.#step(ITEMS);
  }

  /** The field that identifies the items of the list at this place. */
  get key(): string {
    return this.#rules.find(({ steps }) => steps.length === 0)?.key ?? DEFAULT_KEY;
  }

  #step(step: string): ListKeys {
    const rules = this.#rules.flatMap(({ steps: [first, ...steps], key }) => (first === step ? [{ steps, key }] : []));
    return rules.length === 0 ? ListKeys.NONE : new ListKeys(rules);
  }
}

function ruleOf({ path, key }: ListKey): Rule {
  if (key === '') {
    throw new ListKeyError('invalid-list-key', `the list key of "${path}" is empty: expected the name of a field`);
  }
  const steps = path.split('.').flatMap((part) => {
    const [, field, items = ''] = PATH_PART.exec(part) ?? [];
    if (field === undefined) {
      const expected = 'fields separated by dots, and [] for the items of a list, such as "spec.containers[].ports"';
      throw new ListKeyError('invalid-list-key', `the path "${path}" of a list key is invalid: expected ${expected}`);
    }
    return [field, ...Array.from({ length: items.length / ITEMS.length }, () => ITEMS)];
  });
  return { steps, key };
}
