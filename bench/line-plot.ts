// A plot of lines as SVG, with a logarithmic x axis. Readable on light and dark pages.

export interface Plot {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly lines: readonly { readonly title: string; readonly points: readonly (readonly [x: number, y: number])[] }[];
}

const WIDTH = 760;
const HEIGHT = 420;
const MARGIN = { left: 60, right: 20, top: 40, bottom: 50 };
/** Colours that people who see few colours can tell apart. */
const COLOURS = ['#888888', '#56b4e9', '#009e73', '#e69f00', '#d55e00', '#cc79a7'];
const LINE_HEIGHT = 18;

export function linePlot({ title, x, y, lines }: Plot): string {
  const points = lines.flatMap((line) => line.points);
  const most = Math.max(...points.map(([at]) => at));
  const highest = niceAbove(Math.max(...points.map(([, value]) => value)));
  const left = (at: number): number =>
    MARGIN.left + (Math.log10(at) / Math.max(1, Math.log10(most))) * (WIDTH - MARGIN.left - MARGIN.right);
  const top = (value: number): number =>
    HEIGHT - MARGIN.bottom - (value / highest) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const xs = [...new Set(points.map(([at]) => at))].toSorted((a, b) => a - b);
  const ys = [0, 0.25, 0.5, 0.75, 1].map((share) => share * highest);
  const parts = [
    ...ys.map(
      (value) =>
        `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${px(top(value))}" y2="${px(top(value))}" stroke="#999" stroke-opacity="0.4"/>` +
        label(MARGIN.left - 8, top(value) + 4, String(Number(value.toFixed(2))), 'end'),
    ),
    ...xs.map((at) => label(left(at), HEIGHT - MARGIN.bottom + 20, at.toLocaleString('en'), 'middle')),
    label(WIDTH / 2, HEIGHT - 8, x, 'middle'),
    label(MARGIN.left - 8, MARGIN.top - 12, y, 'end'),
    label(MARGIN.left, 20, title, 'start'),
    ...lines.map((line, index) => series(line, index, left, top)),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13" fill="#777">\n${parts.join('\n')}\n</svg>\n`;
}

function series(
  { title, points }: Plot['lines'][number],
  index: number,
  left: (at: number) => number,
  top: (value: number) => number,
): string {
  const colour = COLOURS[index % COLOURS.length] ?? '';
  const path = points.map(([at, value]) => `${px(left(at))},${px(top(value))}`).join(' ');
  const dots = points.map(
    ([at, value]) => `<circle cx="${px(left(at))}" cy="${px(top(value))}" r="3.5" fill="${colour}"/>`,
  );
  const legend = MARGIN.top + 14 + index * LINE_HEIGHT;
  return [
    `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...dots,
    `<rect x="${MARGIN.left + 14}" y="${legend - 9}" width="12" height="4" fill="${colour}"/>`,
    label(MARGIN.left + 32, legend - 2, title, 'start'),
  ].join('');
}

function label(x: number, y: number, text: string, anchor: 'start' | 'middle' | 'end'): string {
  return `<text x="${px(x)}" y="${px(y)}" text-anchor="${anchor}">${escaped(text)}</text>`;
}

const px = (value: number): string => value.toFixed(1);

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** The least of 1, 2, 2.5 and 5 times a power of ten that is not below the value. */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= value) ?? 10) * power;
}
