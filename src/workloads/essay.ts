// The text that the demo learns: an essay of the project's own, long enough to have habits and
// short enough to learn them in a minute.

export const essay: string = `\
The Kiln and the Graph

There is an old way to make a strong thing out of a weak one. You take a powder, fine and dry, and you press it into the
shape that you want. The shape holds, but only just: a thumb would break it. Then you put the shape into a kiln and you heat
it, slowly, and not so far that it melts. The grains do not run together like water. They only touch, and where they touch
they grow small necks, and the necks grow thick, and the gaps between the grains close one after another. When the kiln is
cold again the powder is gone, and in its place there is one solid piece. This is called sintering. Nothing was added, and
nothing was taken away but the empty space between the grains.

A program that works on arrays begins as a powder too. Each line of it is a grain: add these two arrays, take the largest of
each row, multiply this matrix by that one. Each grain is small and plain and right. But if a machine runs them one at a
time, then between every two grains there is a gap, and the gap is memory. The first grain writes its whole result out, and
the second grain reads it all back in. A modern machine can multiply far faster than it can read. So most of the time is
spent in the gaps, and the machine, which could do so much, waits.

The cure is the same as in the kiln. Let the grains touch. Let the sum that follows the product happen while the product is
still at hand, before it was ever written. Let the row that has just been read give its largest value, and then its sum, and
then its softmax, while it is still close. Where two grains touch, a neck grows, and the gap between them closes. When the
work is done the powder of small steps is gone, and in its place there are a few solid kernels. Nothing was added, and
nothing was taken away but the trips to memory and back.

The Potter

A potter who is new to the craft wants to begin at once. The wheel turns, the clay is wet, and the hands are quick. A potter
who has been at it for thirty years begins by waiting. She looks at the clay. She looks at the list of what must be made
today: six bowls, one jug, a plate for the house. She thinks of the kiln, which takes a whole day to heat and a whole day to
cool, and which costs the same whether it holds one bowl or sixty. Only then does she sit down at the wheel.

To wait is not to be lazy, although that is the word that is used for it. A lazy array is one that has not been made yet. It
knows its shape, and it knows what it will be made of, and it is in no hurry. When you add two lazy arrays you do not get
numbers. You get a promise, with a shape, that says: this will be the sum of those. When you multiply the promise by another
you get a larger promise. The promises point back at each other, and so they form a graph. The graph is the list of what must
be made today. Only when somebody asks to see a number does the kiln get lit, and by then the list is known from one end to
the other, and the work can be put in the best order, and what nobody asked for need not be made at all.

The young potter asked: but how do I know that it will be right, when nothing happens while I write? The old potter said:
you will know that it is wrong at once. If the shapes do not fit, then they do not fit now, and not only when the kiln is
hot. A bowl of eight inches will not sit in a ring of six, and I can tell you so before there is any fire. What waits is the
labour. What does not wait is the judgement.

The Shape of Things

Every array has a shape, and the shape is the first thing to know about it. Eight rows and three columns: that is a shape. A
batch of four, with a hundred and twenty eight places in each, and two hundred and fifty six numbers at each place: that is a
shape as well. A single number has a shape with nothing in it, and that is not the same as having no shape.

Most mistakes are mistakes of shape. The matrix is the wrong way round, or the batch was left out, or one row was meant and
every row was given. A good tool says which shapes did not fit, and says it at the line where they met, and says what to try
next. A poor tool says that something went wrong, somewhere, later. The difference between the two is an afternoon.

Some work changes the shape and nothing else. To turn a matrix on its side moves no number at all, if you are willing to read
it in another order. To take every second row, to add an axis of one, to spread one row over many: all of these are only ways
of reading. They cost nothing as long as nobody writes them down. So a good compiler never writes them down. It keeps, for
every array, a rule that says where each number is to be found, and when one rule follows another it makes one rule of the
two. Then the numbers stay where they are, and only the reader walks in another pattern.

The Way Back

To learn is to go forward, see how wrong you were, and then go back along the same path and ask of every step: how much of
the error was yours? The way back is longer than the way forward, but it is not harder. Every step has a rule. The rule for a
sum is that the blame goes to both sides alike. The rule for a product is that the blame of one side is weighed by the value
of the other. The rule for the largest of a row is that the blame goes to the one that was largest, and where two were
equally large they share it. The rule for a step that was not taken is that it bears no blame at all, whatever it would have
been.

If each step has a rule, and each rule is made of steps, then the way back is itself a path, and you can go back along that
one too. Nothing new is needed. This is the beauty of doing it on the graph: you write the forward way, and the way back is
not run, and not watched, but written out, as a graph like any other. And because it is a graph like any other it goes into
the same kiln. The grains of the way back touch the grains of the way forward, and the necks grow between them as well.

There is a question that every traveller knows: what to carry, and what to find again. You could carry every value that you
met on the way forward, so that you have it at hand on the way back. The pack gets heavy. Or you could carry nothing, and
make each value again when you need it. The way gets long. The wise carry what was dear to make, and make again what was
cheap. A product of two large matrices is dear. The square of a number that you hold in your hand is cheap. So the one is
carried, and the other is made again, and the pack stays light.

The Weaver

A weaver does not think of the cloth as a million crossings, although that is what it is. She thinks of the warp, which is
set up once, and the weft, which runs across it again and again. She thinks of a tile, a hand wide, that repeats. When the
pattern is large she works on a part of it that she can reach without standing up, and finishes that part, and only then
moves on. If she went all the way across with every thread the cloth would be the same, but her arms would be tired, and the
day would be over.

So it is with a product of matrices. There are a great many numbers, and each is used many times. If you fetch a number from
afar each time that it is used you will spend the day fetching. So you choose a tile of the result, small enough to hold in
your hands. You bring a strip of the left side and a strip of the right side to your table. You use each number on the table
as often as it can be used before you put it back. Then you bring the next two strips. The result is the same to the last
thread, if you keep to the same order. What has changed is how often you stood up.

How large should the tile be? It depends on your hands, and on your table, and on how far away the shelf is. One machine has
many small hands that work side by side and share a table. Another has a few large hands and no table at all, and for that
one it is foolish to carry things to a table first. The pattern is the same, but the plan is not. So keep the two apart. Say
once, in plain words, what is to be made. Say in another place how this machine should make it. Then a new machine needs a
new plan, and the pattern stays as it was.

The Clock and the Scale

There are two ways to find out if a thing is fast. One is the clock. You start it, you do the work, you stop it. The clock
never lies, but it only ever speaks of the one machine that you have, on the one day that you asked. The other is the scale.
You count what was moved, and how often somebody stood up. The scale knows nothing of the day. It says: this program reads
each number once and writes each number once, and no program can do with less. Or it says: this program reads everything
three times, and here is the place where it does.

Use the scale first. It can be used without the machine, and before the program has ever run. It tells you what is possible,
and how far from it you are. Then use the clock, to find out what you have forgotten. If the scale is content and the clock
is not, then there is something about the machine that you did not know, and it is good to have found that out.

And keep a list of what things should weigh. A softmax of rows should be one kernel. A norm of rows should be one kernel. A
product with a bias and a curve after it should be one kernel, and not three. Write the numbers down, and check them every
day, and when one of them grows, find out why on that same day. It is easy to lose a thing slowly. It is hard to lose it
slowly if you weigh it every morning.

The Judge

How do you know that the fast way gives the same result as the slow way? You do both, and you compare. Somewhere there must
be a plain and patient worker who does every step just as it is written, one number at a time, and never takes a short way.
He is far too slow for any real work, and nobody minds, because that is not what he is for. He is the judge. When the quick
ones disagree with him, the quick ones are wrong. When two quick ones disagree with each other, they go to him.

It is not enough to ask the judge about the cases that you have thought of. You thought of those, and so you made them work.
Ask him about cases that nobody thought of. Take a handful of dice and roll up a program: this step, then that one, over a
shape that nobody would choose, with a row that is empty, with a number that is not a number. Let the quick ones and the
judge all run it. Most days nothing happens. On the day that something does, make the program smaller, step by step, for as
long as they still disagree. In the end there are two or three steps left, and the mistake stands there in plain sight, and
you may wonder how you could have missed it.

The Reader

A program is written once and read many times, and most of the readers come late, and in a hurry, and without the writer. So
write for them. Give each thing one name and use the same name everywhere. Let each file be about one thing, and let its
first lines say what comes in, what goes out, and what the idea is called, so that the reader can find the paper or the book
where it was first explained. Do not explain what a line does, for the line says that already. Explain why it is there, and
why it is not some other line that the reader would have written instead.

What a machine writes can be read as well. There is no reason why a kernel that was put together by a compiler should look
like the inside of a clock that fell down the stairs. Let it begin with a line that says what it is. Let its names be those
of the things they stand for. Let it do one thing on each line. Some day there will be a wrong number, and somebody will open
that kernel at night, and it should be a page and not a wall.

The Small Machine

Not everybody has a large machine. There are more small ones than large ones, and they are closer to the people. A page that
somebody opens on a train, a laptop that is six years old, a test that runs at night on a rented computer without any card in
it: all of these are machines. A tool that only works on the large ones is a tool for the few. So it is worth some trouble to
make the small ones work, and to make them work in the same way, with the same words, and with the same results.

On a small machine you cannot hide a bad plan behind a great deal of strength. If you carry everything three times, you will
see that you do. In this the small machine is a good teacher. What is lean on the small machine will be lean on the large
one as well. What was learned there is not lost.

The Fire

In the end the kiln has to be lit. All the waiting was for this. The list is known, the pieces are pressed, the plan is made.
The first time, it takes a while, for the plan has to be drawn up and the tools have to be cut to size. The second time, the
same list comes again, with other numbers in it, and the plan is still there on the wall, and the tools still hang in their
places. So the second time there is nothing to do but the work itself. And the third time, and the thousandth.

This is how a thing learns. It goes forward a thousand times and comes back a thousand times, and each time the error is a
little smaller. In the beginning it knows nothing, and every letter seems as likely as every other. After a few steps it
knows that the blank is common and the q is rare. After a few more it knows that after a q comes a u. Then it begins to
know words, the short ones first: the, and, of, to, in, it is. It does not know what they mean. It only knows what follows
what. But to know what follows what, and to be less and less surprised by the next thing that comes, is not a bad way to
begin.

When the kiln is cold you open the door, and there it stands, on the shelf where you had put a shape of dust. You knock on it
with a knuckle and it rings. It is the same shape. It is only that now it holds.
`;
