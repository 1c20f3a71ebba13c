import { expect, test } from 'vitest';
import { chooseFit, linesIn } from './fit.ts';
import { type Box, divide, gridFor, planRooms } from './layout.ts';
import { FIGURE, MINI, SPECK } from './sheet.ts';

const area = ({ width, height }: Box): number => width * height;
const apart = (one: Box, other: Box): boolean =>
  one.x + one.width <= other.x + 1e-6 ||
  other.x + other.width <= one.x + 1e-6 ||
  one.y + one.height <= other.y + 1e-6 ||
  other.y + other.height <= one.y + 1e-6;

const SIZES = [
  [1440, 900],
  [390, 844],
  [2560, 400],
  [40, 30],
] as const;

test('pieces of a box fill it, in their proportion', () => {
  const boxes = divide({ x: 0, y: 0, width: 100, height: 60 }, [1, 2, 3]);
  expect(boxes.map(area).map(Math.round)).toEqual([1000, 2000, 3000]);
});

test('everybody has a cell of their own inside of their room, on every screen', () => {
  const demands = [
    {
      id: 'one',
      areas: [
        { name: 'cli', capacity: 3 },
        { name: 'telegram', capacity: 4000 },
      ],
    },
    { id: 'empty', areas: [] },
    { id: 'two', areas: ['api', 'cli', 'cron'].map((name) => ({ name, capacity: 700 })) },
  ];
  for (const [width, height] of SIZES) {
    const rooms = planRooms(demands, width, height, 1);
    for (const [at, room] of rooms.entries()) {
      for (const other of rooms.slice(at + 1)) expect(apart(room.box, other.box)).toBe(true);
      for (const [index, plan] of room.areas.entries()) {
        expect(plan.columns * plan.rows).toBeGreaterThanOrEqual(demands[at]?.areas[index]?.capacity ?? 0);
        for (const other of room.areas.slice(index + 1)) expect(apart(plan.box, other.box)).toBe(true);
      }
    }
  }
});

test('the same people get the same plan', () => {
  const demands = [{ id: 'one', areas: [{ name: 'cli', capacity: 30 }] }];
  expect(planRooms(demands, 1440, 900, 2)).toEqual(planRooms(demands, 1440, 900, 2));
});

test('ten thousand fit on one page as figures with a face', () => {
  const areas = ['api', 'cli', 'cron', 'telegram'].map((name) => ({ name, capacity: 690 }));
  const rooms = planRooms(
    ['a', 'b', 'c', 'd'].map((id) => ({ id, areas })),
    1440,
    900,
    1,
  );
  for (const { areas: plans } of rooms)
    for (const { floor, columns, rows } of plans)
      expect(chooseFit(floor.width / columns, floor.height / rows, 1).grade).toBe(MINI);
});

test('a grid has as many cells as are asked for, as large as can be', () => {
  expect(gridFor(100, 100, 4)).toMatchObject({ columns: 2, rows: 2, cell: 50 });
  expect(gridFor(300, 100, 3)).toMatchObject({ columns: 3, rows: 1, cell: 100 });
  expect(gridFor(10, 1000, 7)).toMatchObject({ columns: 1, rows: 7 });
});

test('figures become smaller in whole steps, and names go first', () => {
  expect(chooseFit(200, 200, 1)).toEqual({ grade: FIGURE, scale: 6 });
  expect(chooseFit(60, 64, 1)).toEqual({ grade: FIGURE, scale: 2 });
  expect(linesIn(60, 64, { grade: FIGURE, scale: 2 }, 1).below).toBeGreaterThan(0);
  expect(linesIn(50, 64, { grade: FIGURE, scale: 2 }, 1).below).toBe(0);
  expect(chooseFit(30, 30, 1)).toEqual({ grade: FIGURE, scale: 1 });
  expect(chooseFit(20, 20, 1)).toEqual({ grade: MINI, scale: 2 });
  expect(chooseFit(9, 9, 1)).toEqual({ grade: MINI, scale: 1 });
  expect(chooseFit(3, 3, 1)).toEqual({ grade: SPECK, scale: 1 });
});
