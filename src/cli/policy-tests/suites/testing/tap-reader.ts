// A reader of TAP 14, as strict as its grammar: https://testanything.org/tap-version-14-specification.html
import assert from 'node:assert/strict';
import { isJsonObject, type JsonObject } from '../../../../values/index.ts';
import { parseYaml } from '../../../../values/yaml/index.ts';

export interface TestPoint {
  readonly ok: boolean;
  readonly description: string;
  readonly skip?: string;
  readonly diagnostics?: JsonObject;
}

const POINT = /^(not )?ok (\d+) - ((?:[^\\#]|\\[\\#])*?)(?: # (SKIP|TODO)(?: (.*))?)?$/u;

/** @param comments to which the texts of comments are added */
export function readTap(text: string, comments: string[] = []): readonly TestPoint[] {
  const [version, plan = '', ...lines] = text.split('\n');
  assert.equal(version, 'TAP version 14');
  const [, count] = /^1\.\.(\d+)(?: # .*)?$/.exec(plan) ?? assert.fail(`no plan: ${plan}`);
  assert.equal(lines.pop(), '', 'the last line has an end');
  const points: TestPoint[] = [];
  while (lines.length > 0) {
    const line = lines.shift() ?? '';
    if (line.startsWith('# ')) {
      comments.push(line.slice(2));
      continue;
    }
    const match = POINT.exec(line) ?? assert.fail(`no test point: ${line}`);
    const [, not, id, description = '', directive, reason = ''] = match;
    assert.equal(Number(id), points.length + 1);
    const diagnostics = lines[0] === '  ---' ? diagnosticsOf(lines) : undefined;
    points.push({
      ok: not === undefined,
      description: unescaped(description),
      ...(directive === undefined ? {} : { skip: unescaped(reason) }),
      ...(diagnostics === undefined ? {} : { diagnostics }),
    });
  }
  assert.equal(points.length, Number(count));
  return points;
}

/** Takes the lines of a block of YAML. */
function diagnosticsOf(lines: string[]): JsonObject {
  const end = lines.indexOf('  ...');
  const block = lines.splice(0, end + 1).slice(1, -1);
  assert.ok(
    end > 0 && block.every((line) => line === '' || line.startsWith('  ')),
    'a block has an end, and is indented',
  );
  const [value] = parseYaml(block.map((line) => line.slice(2)).join('\n'), 'core');
  assert.ok(isJsonObject(value));
  return value;
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, '$1');
}
