// An explanation as `portcullis explain` prints it.
import type { Explanation } from '../../explain/index.ts';
import { styled } from '../../values/index.ts';
import { oneLine } from '../table.ts';

export function explanationText(explanation: Explanation): string {
  const { because, unread = [], toDo, evidence = [] } = explanation;
  const conditions = evidence.map(
    ({ type, status, reason, lastTransitionTime }) => `${type} ${status} since ${lastTransitionTime}: ${reason}`,
  );
  const lines = [
    styled('bold', oneLine(headText(explanation))),
    ...because.map((text) => `  ${oneLine(text)}`),
    ...part('Conditions:', explanation.object === undefined ? [] : conditions),
    ...part('What is not known:', explanation.object === undefined ? [] : unread),
    ...part('What to do:', toDo),
  ];
  return `${lines.join('\n')}\n`;
}

function headText({
  object,
  policy,
  policySet = '',
  template,
  compliant,
  state = 'Unknown',
  ready,
  since,
}: Explanation): string {
  if (object !== undefined) {
    const time = since === undefined ? '' : ` since ${since}`;
    return `${object} is ${state}${ready === undefined ? time : `, Ready ${ready}${time}`}`;
  }
  const whole = policy === undefined ? `policyset ${policySet}` : `policy ${policy}`;
  const subject = template === undefined ? whole : `template ${template} of ${whole}`;
  return `${subject} ${compliant === undefined ? 'has no compliance yet' : `is ${compliant}`}`;
}

function part(heading: string, texts: readonly string[]): readonly string[] {
  return texts.length === 0 ? [] : ['', styled('bold', heading), ...texts.map((text) => `  ${oneLine(text)}`)];
}
