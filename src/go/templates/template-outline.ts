// What can be known of a template without executing it.
import type { Delimiters } from './template-lexer.ts';
import { type Operand, parseTemplate, type Pipeline, type TemplateNode } from './template-parser.ts';

/** A call of a function, with its operands as far as they are texts of the template. */
export interface TemplateCall {
  readonly name: string;
  readonly operands: readonly (string | undefined)[];
}

export interface TemplateOutline {
  /** All calls, whatever conditions stand around them. */
  readonly calls: readonly TemplateCall[];
  /** Texts that the template may become, which have each of its branches at least once. */
  readonly texts: readonly string[];
  /** Whether there are more branches than texts. */
  readonly isPartial: boolean;
}

/** Most texts of an outline: each has the length of the template. */
const MAX_TEXTS = 32;

/**
 * @param placeholder for what actions write
 * @throws TemplateError `template-invalid`
 */
export function templateOutline(text: string, placeholder: string, delimiters?: Delimiters): TemplateOutline {
  const { nodes, definitions } = parseTemplate(text, () => true, delimiters);
  const calls = [nodes, ...definitions.values()].flatMap(callsOf);
  const texts = textsOf(nodes, placeholder);
  return { calls, texts: texts.slice(0, MAX_TEXTS), isPartial: texts.length > MAX_TEXTS };
}

/** The first text has the first branch of each condition, the second one the second, and so on. */
function textsOf(nodes: readonly TemplateNode[], placeholder: string): readonly string[] {
  const choices = nodes.map((node) => textsOfNode(node, placeholder));
  const count = Math.min(MAX_TEXTS + 1, Math.max(1, ...choices.map(({ length }) => length)));
  return Array.from({ length: count }, (_, index) =>
    choices.map((texts) => texts[Math.min(index, texts.length - 1)] ?? '').join(''),
  );
}

function textsOfNode(node: TemplateNode, placeholder: string): readonly string[] {
  switch (node.kind) {
    case 'text':
      return [node.text];
    case 'action':
      return [node.pipeline.names.length > 0 ? '' : placeholder];
    case 'template':
      return [placeholder];
    case 'break':
    case 'continue':
      return [''];
    default:
      return [...textsOf(node.body, placeholder), ...textsOf(node.otherwise, placeholder)];
  }
}

function callsOf(nodes: readonly TemplateNode[]): readonly TemplateCall[] {
  return nodes.flatMap((node) => [
    ...('pipeline' in node && node.pipeline !== undefined ? pipelineCalls(node.pipeline) : []),
    ...('body' in node ? [...callsOf(node.body), ...callsOf(node.otherwise)] : []),
  ]);
}

function pipelineCalls({ commands }: Pipeline): readonly TemplateCall[] {
  return commands.flatMap((command, index) => {
    const [first, ...operands] = command;
    const nested = command.flatMap((one) => (one.kind === 'pipeline' ? pipelineCalls(one.pipeline) : []));
    const names = operands.flatMap((one) => (one.kind === 'function' ? [{ name: one.name, operands: [] }] : []));
    const piped = index === 0 ? [] : [pipedText(commands[index - 1] ?? [])];
    const own =
      first?.kind === 'function' ? [{ name: first.name, operands: [...operands.map(constantText), ...piped] }] : [];
    return [...own, ...names, ...nested];
  });
}

function pipedText(command: readonly Operand[]): string | undefined {
  const [only, ...others] = command;
  return only === undefined || others.length > 0 ? undefined : constantText(only);
}

function constantText(operand: Operand): string | undefined {
  return operand.kind === 'constant' && typeof operand.value === 'string' ? operand.value : undefined;
}
