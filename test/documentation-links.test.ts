// Every link of the documentation leads to a heading or file that exists, and every path of the sources that it names does.
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, it } from 'node:test';

const root = join(import.meta.dirname, '..');
const PAGES = globSync(['*.md', '.github/**/*.md', 'docs/**/*.md', 'test/**/*.md', 'src/**/*.md', 'examples/**/*.md'], {
  cwd: root,
}).filter((file) => !file.includes('node_modules'));

/** Folders that docs/architecture.md gives to features that are not there yet. */
const FUTURE: ReadonlySet<string> = new Set(['src/audit', 'src/fleet', 'src/console']);
/** Pages that name paths of other projects. */
const FOREIGN: ReadonlySet<string> = new Set(['test/conformance/governance/README.md']);
/** What was true when it was decided stays in a decision. */
const HISTORY = /^(?:docs\/adr\/|CHANGELOG)/;

const textOf = (file: string): string => readFileSync(join(root, file), 'utf8');
const withoutCode = (text: string): string => text.replaceAll(/^```[^]*?^```/gm, '').replaceAll(/`[^`\n]*`/g, '');

/** The anchor of a heading, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\-_ ]/gu, '')
    .replaceAll(' ', '-');
}

function anchorsOf(file: string): ReadonlySet<string> {
  const text = textOf(file).replaceAll(/^```[^]*?^```/gm, '');
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading));
  const repeated = headings.map((anchor, index) => {
    const before = headings.slice(0, index).filter((one) => one === anchor).length;
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
  return new Set([...repeated, ...[...text.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, id = '']) => id)]);
}

/** What is wrong with a link of a page; undefined if nothing is. */
function brokenLink(page: string, target: string): string | undefined {
  const [path = '', anchor = ''] = decodeURI(target).split('#');
  const file = path === '' ? page : relative(root, join(root, dirname(page), path));
  if (!existsSync(join(root, file))) {
    return `${page}: ${target} does not exist`;
  }
  const isFound = anchor === '' || !file.endsWith('.md') || anchorsOf(file).has(anchor);
  return isFound ? undefined : `${page}: ${file} has no heading #${anchor}`;
}

describe('the documentation', () => {
  it('links to files and headings that exist', () => {
    const links = PAGES.flatMap((page) =>
      [...withoutCode(textOf(page)).matchAll(/\]\((?!\w+:)([^)\s]+)\)/g)].map(
        ([, target = '']) => [page, target] as const,
      ),
    );
    assert.ok(links.length > 300, `found ${links.length} links`);
    assert.deepEqual(
      links.flatMap(([page, target]) => brokenLink(page, target) ?? []),
      [],
    );
  });

  it('names files and folders that exist', () => {
    const named = PAGES.filter((page) => !HISTORY.test(page) && !FOREIGN.has(page)).flatMap((page) =>
      [...textOf(page).matchAll(/`((?:src|test|bench|tools|examples|docs)\/[\w./-]+)`/g)].map(
        ([, path = '']) => [page, path] as const,
      ),
    );
    assert.ok(named.length > 200, `found ${named.length} paths`);
    const missing = named.filter(([, path]) => !FUTURE.has(path) && !existsSync(join(root, path)));
    assert.deepEqual(
      missing.map(([page, path]) => `${page}: ${path}`),
      [],
    );
  });
});
