import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { terminalSvg } from '../../scripts/images/terminal-svg';

const ESC = String.fromCharCode(27);
const textsOf = (svg: string): string[] =>
  [...svg.matchAll(/<text [^>]*>(.*)<\/text>/g)].map((match) => (match[1] ?? '').replace(/<[^>]*>/g, ''));

test('a line is text, and colours are spans', () => {
  const svg = terminalSvg('title', [{ text: `${ESC}[32m$${ESC}[39m ${ESC}[1mslipway${ESC}[22m run`, atSeconds: 1 }]);
  expect(svg).toContain('<tspan fill="#3fb950">$</tspan> <tspan font-weight="bold">slipway</tspan> run</text>');
});

test('a sequence that ends all styles ends them', () => {
  const svg = terminalSvg('title', [{ text: `${ESC}[31;2mred${ESC}[0m plain`, atSeconds: 0 }]);
  expect(svg).toContain('<tspan fill="#ff7b72" opacity="0.7">red</tspan> plain</text>');
});

test('what would be markup or a control character is none', () => {
  const svg = terminalSvg('a "b"', [{ text: `<script>&${String.fromCharCode(7)}`, atSeconds: 0 }]);
  expect(svg).toContain('&lt;script&gt;&amp;</text>');
  expect(svg).toContain('<title>a &quot;b&quot;</title>');
});

test('a line longer than the terminal goes on in the next row, and loses nothing', () => {
  const long = 'abcdefghij'.repeat(30);
  const rows = textsOf(terminalSvg('title', [{ text: long, atSeconds: 0 }]));
  expect(rows.map((row) => row.length)).toEqual([124, 124, 52]);
  expect(rows.join('')).toBe(long);
});

test('lines appear at their time, the screen moves up when it is full, and the last screen stays', () => {
  const lines = Array.from({ length: 30 }, (_, i) => ({ text: `line ${i}`, atSeconds: i < 28 ? 2 : 4 }));
  const svg = terminalSvg('title', lines);
  expect(svg).toContain('@keyframes t0{0%{opacity:0}20.00%{opacity:1}');
  expect(svg).toContain('20.00%{transform:translateY(0px)}40.00%{transform:translateY(-36px)}');
  expect(svg).toContain('.screen{transform:translateY(-36px);animation:screen 10s step-end infinite}');
});

test('the recording of the documentation shows a refusal, a crash and the end of the run, and no path of a machine', () => {
  const rows = textsOf(readFileSync(path.join(__dirname, '../../docs/images/terminal.svg'), 'utf8'));
  const text = rows.join('\n');
  expect(text).toContain('must be a SageMaker training instance type, got ml.m5.xlarg');
  expect(text).toContain('a host was lost: AlgorithmError: exit code: 137');
  expect(text).toContain('completed, attempt 2, step 40 (training completed)');
  expect(text).not.toMatch(/\/(tmp|work|root|home)\//);
});
