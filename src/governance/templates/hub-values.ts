import { failTemplate } from '../../go/templates/index.ts';
import type { TemplatePart } from '../../go/templates/index.ts';
import { isJsonObject, setOwn } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';

// What hub templates make is rendered again on the managed cluster: values of the hub may not become templates there.

/** A text with actions of the managed cluster, in which the hub's values are data. */
export function hubText(parts: readonly TemplatePart[]): string {
  let open = '';
  return parts
    .map(({ text, action }, index) => {
      if (action !== undefined) {
        return open === '' ? escaped(text) : checked(text, open);
      }
      open = openAction(open + text);
      // A brace before a value would join the brace of an action that writes one.
      const isBeforeValue = parts[index + 1]?.action !== undefined;
      return open === '' && isBeforeValue ? text.replace(/\{$/, BRACE) : text;
    })
    .join('');
}

/** All strings of a value as data. */
export function withoutTemplates(value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    return value.map(withoutTemplates);
  }
  if (isJsonObject(value)) {
    const object: JsonObject = {};
    for (const [key, item] of Object.entries(value)) {
      setOwn(object, escaped(key), withoutTemplates(item));
    }
    return object;
  }
  return typeof value === 'string' ? escaped(value) : value;
}

/** Longest action with values of the hub: it is searched for each of them. */
const MAX_ACTION_LENGTH = 2000;

/** The action of the managed cluster that a text ends in, from its `{{`; empty when it ends in none. */
function openAction(text: string): string {
  const start = text.lastIndexOf('{{');
  const open = start === -1 || text.lastIndexOf('}}') > start ? '' : text.slice(start);
  return open.length > MAX_ACTION_LENGTH
    ? failTemplate(`an action with values of the hub is longer than ${MAX_ACTION_LENGTH} characters`)
    : open;
}

/** Braces that are two, or may become two beside what follows or precedes, are written by an action. */
const BRACES = /^\{|\{(?=\{|$)|(?<=\{)\{/g;

/** An action that writes a brace. */
const BRACE = '{{ "{" }}';

function escaped(text: string): string {
  return text.replace(BRACES, BRACE);
}

const NUMBER = /^[+-]?\d{1,18}$/;
/** Text that stays within double quotes. */
const QUOTABLE = /^[^"\\\n\r{}]*$/;

function checked(text: string, open: string): string {
  const quotes = open.split('"').length - 1;
  const isQuoted = quotes % 2 === 1 && !/[\\`']/.test(open);
  return NUMBER.test(text) || (isQuoted && QUOTABLE.test(text))
    ? text
    : failTemplate(
        'a value of the hub inside of {{ … }} must be a number, or in double quotes, without quotes, backslashes and braces',
      );
}
