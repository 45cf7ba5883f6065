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
  expect(rows.map((row) => row.length)).toEqual([80, 80, 80, 60]);
  expect(rows.join('')).toBe(long);
});

test('a row ends after a space where there is one', () => {
  const text = `${ESC}[31m${'a'.repeat(50)}${ESC}[39m ${'b'.repeat(40)}`;
  expect(textsOf(terminalSvg('title', [{ text, atSeconds: 0 }]))).toEqual([`${'a'.repeat(50)} `, 'b'.repeat(40)]);
});

test('lines appear at their time, the screen moves up when it is full, and the recording begins with its last screen', () => {
  const lines = Array.from({ length: 30 }, (_, i) => ({ text: `line ${i}`, atSeconds: i < 26 ? 2 : 4 }));
  const svg = terminalSvg('title', lines);
  expect(svg).toContain('@keyframes t0{0%{opacity:0}20.00%{opacity:1}');
  expect(svg).toContain('20.00%{transform:translateY(0px)}40.00%{transform:translateY(-84px)}');
  expect(svg).toContain('.screen{transform:translateY(-84px);animation:screen 10s step-end -8.0s infinite}');
});

test('the recording of the documentation shows a refusal, a crash and a resume after the newest checkpoint, and no path of a machine', () => {
  const rows = textsOf(readFileSync(path.join(__dirname, '../../docs/images/terminal.svg'), 'utf8'));
  const text = rows.map((row) => row.trimEnd()).join(' ');
  expect(text).toContain('must be a SageMaker training instance type, got ml.m5.xlarg');
  expect(text).toContain('a host was lost: AlgorithmError: exit code: 137');
  expect(text).toContain('resuming, attempt 2, committed 20 (attempt 2 from step 20)');
  expect(text).toContain('running, attempt 2, step 21, committed 20');
  expect(text).toContain('completed, attempt 2, step 40, committed 40 (training completed)');
  expect(text).not.toMatch(/\/(tmp|work|root|home)\//);
});
