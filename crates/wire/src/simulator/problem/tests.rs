//! Word problems with their answers.
use super::*;
use crate::simulator::language::number_text;

const PROBLEMS: &[(&str, &str)] = &[
    ("Mia has 12 boxes with 7 pencils each. She gives away 9 pencils. How many pencils does she have left?", "75"),
    ("A farm has 6 rows with 14 apple trees each. 8 trees are cut down. How many apple trees are left?", "76"),
    ("A baker fills 9 trays with 15 rolls each. He sells 40 rolls. How many rolls are left?", "95"),
    ("A school buys 8 packs with 24 notebooks each. 50 notebooks are handed out. How many notebooks remain?", "142"),
    (
        "A library has 11 shelves with 32 books each. 27 books are lent out. How many books are in the library now?",
        "325",
    ),
    ("Tom had 20 apples. He ate 5 and gave 3 to Ben. How many apples are left?", "12"),
    ("Anna bought 3 notebooks at 4 dollars each and a pen for 2 dollars. How much did she spend in total?", "14"),
    ("Anna has 50 dollars. She buys 3 books at 12 dollars each. How much money does she have left?", "14"),
    ("A train travels 60 km per hour for 3 hours. How far does it travel?", "180"),
    (
        "A car drives 60 km per hour for 2 hours and 80 km per hour for 3 hours. How many kilometers does it drive in total?",
        "360",
    ),
    ("A jacket costs 80 dollars. It is sold with a discount of 25 percent. What is the price?", "60"),
    ("Mia has twice as many stickers as Ben. Ben has 14 stickers. How many stickers do they have together?", "42"),
    ("24 cookies are shared equally among 6 children. How many cookies does each child get?", "4"),
    ("Ben has 14 marbles. Lena has 5 more marbles than Ben. How many marbles do they have altogether?", "33"),
    ("Ben has 14 marbles. Lena has 5 fewer marbles than Ben. How many marbles does Lena have?", "9"),
    ("Each of the 5 shelves holds 8 books. 6 books are taken. How many books are left?", "34"),
    ("There are 30 students in a class. 12 are boys. How many are girls?", "18"),
    ("There are 40 students. 25 percent of the students play chess. How many students play chess?", "10"),
    ("A shop has 48 pencils. They are packed into boxes of 6. How many boxes are needed?", "8"),
    ("She packs 48 pencils into 6 boxes. How many pencils are in each box?", "8"),
    ("A book has 300 pages. Mia reads 40 pages a day for 5 days. How many pages are left?", "100"),
    ("Lena reads 20 pages a day. How many pages does she read in 2 weeks?", "280"),
    (
        "On Monday Lena sold 12 tickets. On Tuesday she sold twice as many. How many tickets did she sell in total?",
        "36",
    ),
    (
        "A bus has 35 passengers. At the first stop 12 get off and 9 get on. How many passengers are on the bus now?",
        "32",
    ),
    (
        "Notebooks cost 4 dollars each and pens cost 2 dollars each. Tom buys 3 notebooks and 5 pens. How much does he pay?",
        "22",
    ),
    ("Tickets cost $7. A family buys 5 tickets and pays with a 50 dollar bill. How much change do they get?", "15"),
    ("4 friends share a bill of 60 dollars equally. How much does each friend pay?", "15"),
    ("Paul earns 15 dollars per hour. He works 8 hours a day for 5 days. How much does he earn?", "600"),
    ("A gardener plants 7 rows of 9 tulips and 12 roses. How many flowers does he plant in total?", "75"),
    ("There are 8 red and 5 blue marbles in a bag. How many marbles are in the bag?", "13"),
    ("There are 12 dogs and 7 cats in a shelter. How many more dogs than cats are there?", "5"),
    ("Anna has 23 shells and Paul has 9 shells. How many more shells does Anna have than Paul?", "14"),
    ("A farmer has 36 eggs. He sells half of them. How many eggs are left?", "18"),
    ("A farmer has 36 eggs. He uses a third of them. How many eggs are left?", "24"),
    ("Nina has 60 beads. She uses 40% of them for a necklace. How many beads are left?", "36"),
    ("A town had 800 people. The population increased by 15 percent. How many people live there now?", "920"),
    (
        "Sam needs 90 dollars for a bike. He has 35 dollars and earns 20 dollars. How many more dollars does he need?",
        "35",
    ),
    ("3 pens cost 6 dollars. How much do 7 pens cost?", "14"),
    ("5 notebooks cost 20 dollars. How much does each notebook cost?", "4"),
    ("A printer prints 12 pages in 3 minutes. How many pages does it print in 10 minutes?", "40"),
    ("A car drives 180 km in 3 hours. How many km does it drive per hour?", "60"),
    ("A baker makes 6 trays of 12 rolls. He sells 50 rolls and then bakes 20 more. How many rolls does he have?", "42"),
    ("Every pack has 24 cards. Lisa buys 5 packs and loses 17 cards. How many cards does she have?", "103"),
    ("A cinema has 15 rows with 20 seats each. 240 seats are taken. How many seats are free?", "60"),
    ("A shop sells 14 cakes at 9 dollars each and spends 50 dollars on flour. What is the profit?", "76"),
    ("A recipe needs 3 eggs per cake. How many eggs are needed for 7 cakes?", "21"),
    ("Max is 12 years old. His sister is 4 years older. How old is his sister?", "16"),
    (
        "Julia saves 5 dollars per week for 8 weeks. She then spends 13 dollars. How much money does she have left?",
        "27",
    ),
    (
        "A tank holds 200 liters of water. 35 liters are used in the morning and 48 liters in the evening. How many liters are left?",
        "117",
    ),
    ("There are 5 classes with 22 students each. 7 students are ill. How many students are at school?", "103"),
    (
        "Oscar collects 18 stamps, then doubles his collection. He gives 6 stamps to Eva. How many stamps does he have?",
        "30",
    ),
    (
        "Kim has 3 boxes of 8 chocolates. She shares them equally among 4 friends. How many chocolates does each friend get?",
        "6",
    ),
    ("A dozen eggs cost 3 dollars. How much do 48 eggs cost?", "12"),
    ("A shop had 120 shirts. It sold 45 on Monday and 30 on Tuesday. How many shirts are left?", "45"),
    ("Ella ran 5 km on Monday, 7 km on Wednesday and 6 km on Friday. How many km did she run altogether?", "18"),
    ("The scores are 80, 90 and 100 points. What is the average score in points?", "90"),
    ("A rope is 45 meters long. It is cut into 9 equal pieces. How long is each piece?", "5"),
    ("A restaurant bill is 80 dollars. The guests add a tip of 15 percent. How much do they pay?", "92"),
    ("A laptop costs 900 dollars. It is 20% off. How much does it cost now?", "720"),
    (
        "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May. How many clips did Natalia sell altogether in April and May?",
        "72",
    ),
    ("A hen lays 6 eggs per week. How many eggs do 8 hens lay in 3 weeks?", "144"),
    (
        "Sofia picks 56 berries. She eats 14 and puts the rest equally into 6 bowls. How many berries are in each bowl?",
        "7",
    ),
    ("A parking lot has 4 levels with 35 spaces each. 98 spaces are occupied. How many spaces are empty?", "42"),
    (
        "Leo has 5 packs of 10 stickers and 7 single stickers. He gives 12 stickers to Ida. How many stickers does he have left?",
        "45",
    ),
    (
        "A ship carries 250 containers. 80 containers are unloaded and 45 are loaded. How many containers are on the ship?",
        "215",
    ),
    ("If there are 3 cars in the parking lot and 2 more cars arrive, how many cars are in the parking lot?", "5"),
    (
        "Michael had 58 golf balls. On tuesday, he lost 23 golf balls. On wednesday, he lost 2 more. How many golf balls did he have at the end of wednesday?",
        "33",
    ),
    ("Olivia has $23. She bought five bagels for $3 each. How much money does she have left?", "8"),
    ("Weng earns $12 an hour for babysitting. Yesterday, she babysat for 5 hours. How much did she earn?", "60"),
    ("A robe takes 2 bolts of blue fiber and half that much white fiber. How many bolts in total does it take?", "3"),
    ("A box holds 24 bottles. A truck carries 15 boxes. How many bottles does the truck carry?", "360"),
    (
        "A store has 5 crates of oranges. Each crate contains 36 oranges. 20 oranges are rotten. How many good oranges are there?",
        "160",
    ),
    ("Emma has 45 euros. She spends 12 euros on a book and 8 euros on lunch. How many euros does she have left?", "25"),
    ("A class of 28 students is divided into groups of 4. How many groups are there?", "7"),
    ("A school has 480 students. 55% of them are girls. How many boys are there?", "216"),
    ("Tom reads 25 pages on Monday and twice as many on Tuesday. How many pages did he read in total?", "75"),
    ("A bakery sold 120 loaves on Friday and 35 fewer on Saturday. How many loaves did it sell on both days?", "205"),
    ("A bus travels 45 km per hour. How far does it travel in 4 hours?", "180"),
    ("If 5 workers build 10 chairs a day, how many chairs do they build in 6 days?", "60"),
    ("A pizza costs $14 and a drink costs $3. How much do 2 pizzas and 4 drinks cost?", "40"),
    ("Maria has 3 times as many books as Paul. Paul has 12 books. How many books does Maria have?", "36"),
    ("There were 64 birds on a wire. A quarter of them flew away. How many birds are still on the wire?", "48"),
    ("A water bottle costs 2 dollars. Sara has 15 dollars and buys 4 bottles. How much money does she have left?", "7"),
    ("A train has 8 wagons. Each wagon has 52 seats. 317 seats are occupied. How many seats are empty?", "99"),
    ("Peter has 100 stamps. He gives 1/4 of them to Anna and 15 to Ben. How many stamps does he keep?", "60"),
];

#[test]
fn problems_are_solved() {
    let mut wrong = Vec::new();
    for (text, expected) in PROBLEMS {
        let solution = solve(text);
        let got = solution.as_ref().map(|s| number_text(s.answer)).unwrap_or_default();
        if got != *expected {
            wrong.push(format!(
                "{text}\n  expected {expected}, got `{got}` by {:?}\n  {:?}",
                solution.map(|s| s.expression()),
                question::read(text)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), PROBLEMS.len(), wrong.join("\n"));
}
